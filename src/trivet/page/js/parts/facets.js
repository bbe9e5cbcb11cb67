// Facets of a listing with counts: categories, tags and sources. Each is a link that adds or removes a filter.

import { address } from '../address.js';
import { api, isAbort } from '../api.js';
import { h, refill, stored, unseen } from '../dom.js';
import { chosen, LISTS, withValue } from '../filters.js';
import { complain } from '../say.js';
import { cut } from './memory.js';

const SHOWN = 12;
const ASKED = 60;
const PAUSE_MS = 200;

/** @param {import('../view.js').Place} place */
export const facets = (place) => {
  const box = h('div', { class: 'facets' });
  const wide = matchMedia('(min-width: 62rem)');
  const fold = h('details', { class: 'filters facet-fold', open: wide.matches }, h('summary', {}, 'Categories, tags, sources'), box);
  return { element: fold, draw: () => draw(place, box) };
};

const draw = async (place, box) => {
  const filters = chosen(place.query);
  const { signal } = place;
  const parts = [
    // Categories combine with OR, so each is counted as if none were chosen; the same for sources.
    ['Categories', 'category', () => api.get('/v1/categories', without(filters, 'category'), { signal })],
    ['Tags', 'tags', () => api.get('/v1/tags', { ...filters, limit: ASKED }, { signal })],
    ['Sources', 'source', (text) => api.get('/v1/sources', { ...without(filters, 'source'), text, limit: ASKED }, { signal })],
  ];
  refill(box, parts.map(([title, name, read]) => part(place, title, name, read)));
};

const without = (filters, name) => Object.fromEntries(Object.entries(filters).filter(([one]) => one !== name));

const part = (place, title, name, read) => {
  const list = h('ul', {});
  const section = h('section', { 'aria-label': title, hidden: true }, h('h2', {}, title), name === 'source' && finder(() => fill), list);
  const fill = async (text) => {
    try {
      const counts = (await read(text)).filter((one) => one.memories > 0 || isChosen(place, name, one.name));
      section.hidden = !counts.length && text === undefined;
      drawCounts(place, name, counts, list);
    } catch (error) {
      if (!isAbort(error)) complain(error);
    }
  };
  fill();
  return section;
};

/** A field that finds a source by part of its name. */
const finder = (fill) => {
  let timer = 0;
  const field = h('input', {
    type: 'search', placeholder: 'Find a file', 'aria-label': 'Find a source by part of its name', autocomplete: 'off',
    on: { input: () => { clearTimeout(timer); timer = setTimeout(() => fill()(field.value.trim()), PAUSE_MS); } },
  });
  return field;
};

const drawCounts = (place, name, counts, list) => {
  const rest = counts.slice(SHOWN);
  const more = h('button', { type: 'button', class: 'small quiet', on: { click: () => refill(list, counts.map((one) => row(place, name, one))) } }, `${rest.length} more`);
  refill(list, counts.slice(0, SHOWN).map((one) => row(place, name, one)), rest.length > 0 && h('li', {}, more));
};

const isChosen = (place, name, value) => place.query.getAll(name).includes(value);

const row = (place, name, { name: value, memories }) => {
  const on = isChosen(place, name, value);
  const query = on ? removed(place.query, name, value) : withValue(place.query, name, value);
  query.delete('offset');
  return h('li', {},
    h('a', { href: address(place.name, place.path, query), title: value, 'aria-current': on ? 'true' : null }, stored(name === 'source' ? ending(value) : cut(value, 60)), on && unseen(', chosen')),
    h('span', { class: 'number help' }, memories.toLocaleString('en')));
};

const removed = (query, name, value) =>
  new URLSearchParams([...query].filter(([one, text]) => one !== name || (LISTS.includes(name) && text !== value)));

/** The end of a path, which tells files apart. */
const ending = (uri) => (uri.length > 34 ? `…${uri.slice(-33)}` : uri);
