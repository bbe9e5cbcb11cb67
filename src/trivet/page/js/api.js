// The server's API, as every client has it: api.get('/v1/memories', {limit: 20, tags: ['a', 'b']}, {signal}),
// api.post('/v1/recall', body, {signal}), put, patch, delete. They give the parsed answer, or null where there is none.
// api.read(path, query, {signal}) gives {value, etag}, for a later write with headers: {'If-Match': etag}.
// What the server refuses is thrown as a Problem, in its own words. A key that is no longer good leads to the sign-in view.

import { parameters } from './address.js';
import { key } from './session.js';

export const SIGNED_OUT = 'trivet:signed-out';

export class Problem extends Error {
  constructor({ status = 0, title = 'It did not work', detail = '', type = '', instance = '' }) {
    super(detail || title);
    Object.assign(this, { name: 'Problem', status, title, detail, type, instance });
  }
}

/** Whether the person left, or asked something newer: nothing to tell them. */
export const isAbort = (error) => error?.name === 'AbortError';

export const api = {
  get: async (path, query = {}, options = {}) => (await asked('GET', withQuery(path, query), undefined, options)).value,
  read: (path, query = {}, options = {}) => asked('GET', withQuery(path, query), undefined, options),
  post: async (path, body = {}, options = {}) => (await asked('POST', path, body, options)).value,
  put: async (path, body = {}, options = {}) => (await asked('PUT', path, body, options)).value,
  patch: async (path, body = {}, options = {}) => (await asked('PATCH', path, body, options)).value,
  delete: async (path, query = {}, options = {}) =>
    (await asked('DELETE', withQuery(path, query), undefined, options)).value,
};

const withQuery = (path, query) => {
  const text = (query instanceof URLSearchParams ? query : parameters(query)).toString();
  return text ? `${path}?${text}` : path;
};

const asked = async (method, path, body, { signal, headers = {} }) => {
  const response = await sent(path, {
    method,
    signal,
    headers: { ...head(method, body), ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
  });
  if (!response.ok) throw await problem(response);
  const value = response.status === 204 ? null : await response.json();
  return { value, etag: response.headers.get('ETag') };
};

const sent = async (path, request) => {
  try {
    return await fetch(path, request);
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new Problem({
      title: 'The server does not answer',
      detail: 'The server does not answer. It may have ended: `trivet open` starts it again.',
    });
  }
};

const head = (method, body) => ({
  ...(key() ? { Authorization: `Bearer ${key()}` } : {}),
  ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
  // So that a write that the network repeats acts once.
  ...(method === 'POST' || method === 'PATCH' ? { 'Idempotency-Key': newKey() } : {}),
});

// crypto.randomUUID is there only over TLS or on loopback; this is everywhere.
const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

const problem = async (response) => {
  const told = await response.json().catch(() => ({ status: response.status, title: response.statusText }));
  if (response.status === 401) document.dispatchEvent(new Event(SIGNED_OUT));
  return new Problem(told);
};
