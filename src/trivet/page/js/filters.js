// The filters of a view, kept in its address, so that a view can be shared as a link.
// filterBar(place, {names, changed}) -> an element. `names` are the API's names of the view's filters; `changed()` is
// called after the address has changed. chosen(place.query) -> {scope, tags: [...], ...} for a request.

import { api } from './api.js';
import { h, refill, stored } from './dom.js';
import { complain } from './say.js';

export const LISTS = ['category', 'tags', 'state'];
export const ALL = ['scope', 'category', 'tags', 'created_after', 'created_before', 'state', 'source', 'as_of'];
const STATES = { active: 'active', superseded: 'superseded', archived: 'archived', deleted: 'forgotten' };
const LABELS = {
  scope: 'Scope',
  category: 'Category',
  tags: 'Tag',
  created_after: 'Since',
  created_before: 'Before',
  state: 'State',
  source: 'Source',
  as_of: 'As it was on',
};
const HINTS = {
  scope: 'team/project',
  tags: 'a tag',
  created_after: '7d or 2026-11',
  created_before: '2026-11-03',
  source: 'docs/ or a file',
  as_of: '2026-11-03',
};

/** The filters in the address, in the form of the API. */
export const chosen = (query, names = ALL) =>
  Object.fromEntries(names.filter((name) => query.has(name)).map((name) => [name, LISTS.includes(name) ? query.getAll(name) : query.get(name)]));

/** @param {import('./view.js').Place} place @param {{names?: string[], changed: () => void}} options */
export const filterBar = (place, { names = ALL, changed }) => {
  const chips = h('ul', { class: 'chips', 'aria-label': 'Filters in use' });
  const fields = h('div', { class: 'fields' });
  const summary = h('summary', {}, 'Filters');
  const bar = h('details', { class: 'filters' }, summary, fields);
  const change = (query) => {
    place.replace(query);
    draw();
    changed();
  };
  const draw = () => {
    refill(chips, names.flatMap((name) => place.query.getAll(name).map((value) => chip(place, name, value, change))));
    chips.hidden = !chips.children.length;
  };
  bar.addEventListener('toggle', () => bar.open && !fields.children.length && drawFields(place, names, fields, change));
  draw();
  return h('div', { class: 'filtering' }, bar, chips);
};

const chip = (place, name, value, change) => {
  const remove = () => change(without(place.query, name, value));
  const text = name === 'state' ? STATES[value] ?? value : value;
  return h('li', {}, h('span', {}, `${LABELS[name]}: `), stored(text.length > 60 ? `${text.slice(0, 60)}…` : text),
    h('button', { type: 'button', class: 'quiet', 'aria-label': `Remove the filter ${LABELS[name]} ${text}`, on: { click: remove } }, '×'));
};

const without = (query, name, value) => {
  const rest = new URLSearchParams([...query].filter(([one, text]) => one !== name || text !== value));
  rest.delete('offset');
  return rest;
};

/** Adds a value to a list, or sets a single value. An empty value removes it. */
export const withValue = (query, name, value) => {
  const next = without(query, name, value);
  if (!LISTS.includes(name)) next.delete(name);
  if (value) next.append(name, value);
  return next;
};

const drawFields = async (place, names, fields, change) => {
  const put = (name, value) => change(withValue(place.query, name, value));
  refill(fields, names.map((name) => field(name, place, put)));
  try {
    const offers = await offered(place.signal);
    for (const [name, values] of Object.entries(offers)) offer(fields, name, values);
  } catch (error) {
    complain(error);
  }
};

const field = (name, place, put) => {
  const control = name === 'category' || name === 'state' ? choice(name, put) : text(name, place, put);
  return h('label', { class: 'field' }, h('span', {}, LABELS[name]), control);
};

/** A menu that adds to a list and then resets for the next choice. */
const choice = (name, put) => {
  const select = h('select', { name, on: { change: () => { put(name, select.value); select.value = ''; } } },
    h('option', { value: '' }, name === 'state' ? 'current' : 'any'),
    name === 'state' && Object.entries(STATES).map(([value, label]) => h('option', { value }, label)));
  return select;
};

const text = (name, place, put) => {
  const done = () => {
    const value = input.value.trim();
    if (LISTS.includes(name) && !value) return;
    put(name, value);
    if (LISTS.includes(name)) input.value = '';
  };
  const input = h('input', {
    name, value: LISTS.includes(name) ? '' : place.query.get(name) ?? '', placeholder: HINTS[name], list: `offer-${name}`,
    autocomplete: 'off', on: { change: done },
  });
  return [input, h('datalist', { id: `offer-${name}` })];
};

/** The values to choose from. */
const offered = async (signal) => {
  const [tags, categories, stats] = await Promise.all([
    api.get('/v1/tags', { limit: 100 }, { signal }),
    api.get('/v1/categories', {}, { signal }),
    api.get('/v1/stats', {}, { signal }),
  ]);
  return {
    tags: tags.map((one) => [one.name, one.memories]),
    category: categories.map((one) => [one.name, one.memories]),
    scope: Object.entries(stats.scopes),
  };
};

const offer = (fields, name, values) => {
  const list = fields.querySelector(`#offer-${name}`) ?? fields.querySelector(`select[name="${name}"]`);
  list?.append(...values.map(([value, memories]) => h('option', { value }, list.tagName === 'SELECT' ? `${value} (${memories})` : String(memories))));
};
