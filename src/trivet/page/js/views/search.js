// Search while the user types. Query and filters are in the address. Outdated answers are discarded, and old hits stay
// until new ones arrive, to avoid flicker.

import { api, isAbort } from '../api.js';
import { parameters } from '../address.js';
import { h, refill } from '../dom.js';
import { chosen, filterBar } from '../filters.js';
import { currentItem } from '../keys.js';
import { answerNotes } from '../parts/answer-notes.js';
import { hitItem, toggleWhy } from '../parts/hit.js';
import { memoryItem } from '../parts/memory.js';
import { complain } from '../say.js';
import { me } from '../session.js';
import { heading } from '../view.js';

// Long enough that a fast typist sends one request per word.
const PAUSE_MS = 160;
const LIMITS = [10, 30, 100];
const LATEST = 5;

/** @param {import('../view.js').Place} place */
export async function show(place) {
  const results = h('div', { class: 'stack results' });
  const count = h('p', { class: 'help count', role: 'status' });
  const ask = asker(place, results, count);
  const field = searchField(place, ask);
  const filters = filterBar(place, { changed: ask.now });
  refill(place.main, h('div', { class: 'stack' },
    h('div', { class: 'unseen' }, heading('Search')),
    field.form, h('div', { class: 'row apart under' }, filters, count), results));
  field.input.focus();
  await me(api).catch(() => {}); // the key's rights decide which buttons are shown
  await ask.now();
}

export const keys = [
  { key: 'w', does: 'Why this hit: show all steps', act: () => withHit(toggleWhy) },
  { key: 'n', does: 'Why is another memory missing?', act: (place) => openWhyNot(place) },
];

const withHit = (act) => {
  const item = currentItem() ?? document.querySelector('main .hit');
  if (item?.matches('.hit')) act(item);
};

const searchField = (place, ask) => {
  const input = h('input', {
    type: 'search', name: 'query', value: place.query.get('query') ?? '', 'data-search': true, 'aria-label': 'Search the memory',
    placeholder: 'Ask in plain words', autocomplete: 'off', spellcheck: 'false', enterkeyhint: 'search', maxlength: '1000',
    on: { input: () => ask.soon(input.value), keydown: (event) => leaveField(event) },
  });
  const submit = (event) => {
    event.preventDefault();
    ask.now(input.value);
  };
  return { input, form: h('form', { class: 'search', role: 'search', on: { submit } }, input, h('kbd', { 'aria-hidden': 'true' }, '/')) };
};

/** Down moves to the hits, Escape leaves the field, so that letters act as shortcuts. */
const leaveField = (event) => {
  const first = document.querySelector('main [data-item]');
  if (event.key === 'ArrowDown' && first) {
    event.preventDefault();
    first.focus();
  } else if (event.key === 'Escape') {
    event.preventDefault();
    event.currentTarget.blur();
  }
};

/** Sends requests, now or after a pause, and shows the answers. */
const asker = (place, results, count) => {
  let timer = 0;
  let older = new AbortController();
  const now = async (text = place.query.get('query') ?? '') => {
    clearTimeout(timer);
    older.abort();
    older = new AbortController();
    place.replace(withQuery(place.query, text));
    place.title(text ? `${text} · Search` : 'Search');
    results.setAttribute('aria-busy', 'true');
    try {
      await draw(place, AbortSignal.any([older.signal, place.signal]), results, count, now);
      results.removeAttribute('aria-busy');
    } catch (error) {
      if (isAbort(error)) return;
      results.removeAttribute('aria-busy');
      complain(error);
    }
  };
  const soon = (text) => {
    clearTimeout(timer);
    timer = setTimeout(() => now(text), PAUSE_MS);
  };
  place.signal.addEventListener('abort', () => clearTimeout(timer));
  return { now: (text) => now(text), soon };
};

const withQuery = (query, text) => {
  const next = new URLSearchParams(query);
  if (next.get('query') !== text) next.delete('limit');
  next.delete('query');
  return parameters({ query: text, ...Object.fromEntries([...new Set(next.keys())].map((name) => [name, next.getAll(name)])) });
};

const draw = async (place, signal, results, count, again) => {
  const query = place.query.get('query')?.trim();
  if (!query) return drawLatest(place, signal, results, count);
  const limit = Number(place.query.get('limit')) || LIMITS[0];
  const answer = await api.post('/v1/recall', { query, limit, ...chosen(place.query) }, { signal });
  refill(count, told(answer));
  refill(results,
    answerNotes(answer),
    answer.hits.length > 0 && h('ol', { class: 'list hits' }, answer.hits.map((hit) => hitItem(hit, answer))),
    h('div', { class: 'row' }, more(place, answer, limit, again), whyNotButton(place)));
  return undefined;
};

const told = (answer) => {
  const number = answer.hits.length;
  const took = answer.took_ms >= 1 ? `, ${Math.round(answer.took_ms)} ms` : '';
  return `${number} ${number === 1 ? 'hit' : 'hits'} of ${answer.health.memories} memories${took}`;
};

const more = (place, answer, limit, again) => {
  const next = LIMITS.find((one) => one > limit);
  if (!next || answer.hits.length < limit) return null;
  const act = () => {
    place.replace(parameters({ ...Object.fromEntries([...new Set(place.query.keys())].map((name) => [name, place.query.getAll(name)])), limit: next }));
    again();
  };
  return h('button', { type: 'button', on: { click: act } }, `Show up to ${next}`);
};

const whyNotButton = (place) =>
  h('button', { type: 'button', class: 'quiet', on: { click: () => openWhyNot(place) } }, 'Expected another memory? Ask why it is missing');

const openWhyNot = async (place) => {
  const query = place.query.get('query')?.trim();
  if (!query) return;
  const { whyNotDialog } = await import('../parts/why-not.js');
  whyNotDialog(query, chosen(place.query));
};

/** Without a query: the latest memories. */
const drawLatest = async (place, signal, results, count) => {
  const page = await api.get('/v1/memories', { limit: LATEST, ...chosen(place.query) }, { signal });
  refill(count, `${page.total} ${page.total === 1 ? 'memory' : 'memories'}`);
  refill(results, page.total
    ? [h('h2', {}, 'Latest memories'), h('ul', { class: 'list' }, page.memories.map((memory) => memoryItem(memory, { level: 'h3' })))]
    : h('div', { class: 'card empty' }, h('h2', {}, 'Nothing is stored yet'), h('p', {}, 'A connected agent stores what it learns; ', h('code', {}, 'trivet remember "..."'), ' stores a sentence.')));
};
