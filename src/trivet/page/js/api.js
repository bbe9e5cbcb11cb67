// The server's API: api.get('/v1/memories', {limit: 20, tags: ['a', 'b']}, {signal}),
// api.post('/v1/recall', body, {signal}), put, patch, delete. They return the parsed answer, or null if there is none.
// api.read(path, query, {signal}) returns {value, etag}, for a later write with headers: {'If-Match': etag}.
// Errors of the server are thrown as a Problem. An invalid key leads to the sign-in view.

import { parameters } from './address.js';
import { key } from './session.js';

export const SIGNED_OUT = 'trivet:signed-out';

export class Problem extends Error {
  constructor({ status = 0, title = 'The request failed', detail = '', type = '', instance = '' }) {
    super(detail || title);
    Object.assign(this, { name: 'Problem', status, title, detail, type, instance });
  }
}

/** Whether the user left or sent a newer request, so that there is nothing to report. */
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
      detail: 'The server does not answer. It may have stopped: `trivet open` restarts it.',
    });
  }
};

const head = (method, body) => ({
  ...(key() ? { Authorization: `Bearer ${key()}` } : {}),
  ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
  // A write that the network repeats must act once.
  ...(method === 'POST' || method === 'PATCH' ? { 'Idempotency-Key': newKey() } : {}),
});

// crypto.randomUUID exists only over TLS or on loopback; this works everywhere.
const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

const problem = async (response) => {
  const told = await response.json().catch(() => ({ status: response.status, title: response.statusText }));
  if (response.status === 401) document.dispatchEvent(new Event(SIGNED_OUT));
  return new Problem(told);
};
