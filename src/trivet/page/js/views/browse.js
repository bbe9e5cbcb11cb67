// All memories, newest first: a list that draws only visible rows, a timeline, and facets. Filters and the position in the
// list are in the address.

import { address } from '../address.js';
import { api } from '../api.js';
import { h, refill } from '../dom.js';
import { chosen, filterBar } from '../filters.js';
import { daysInOrder, utcOffset } from '../parts/days.js';
import { facets } from '../parts/facets.js';
import { longList } from '../parts/long-list.js';
import { about, titleOf } from '../parts/memory.js';
import { PAGE, pagesOf } from '../parts/pages.js';
import { timeline } from '../parts/timeline.js';
import { me } from '../session.js';
import { heading } from '../view.js';

const SORTS = { recency: 'Newest first', importance: 'Most important first' };
// The server's limit per request: 27 years.
const MOST_DAYS = 10_000;
// The address is updated when scrolling stops.
const REST_MS = 300;

/** @param {import('../view.js').Place} place */
export async function show(place) {
  const count = h('p', { class: 'help count', role: 'status' });
  const times = h('div', { class: 'times' });
  const list = h('div', { class: 'results' });
  const sides = facets(place);
  const again = () => place.go(address(place.name, place.path, place.query));
  refill(place.main, h('div', { class: 'stack' },
    h('div', { class: 'row apart' }, heading('Browse'), count),
    h('div', { class: 'row apart under' }, filterBar(place, { changed: again }), sortField(place, again)),
    h('div', { class: 'browse' }, sides.element, h('div', { class: 'stack' }, times, list))));
  await me(api);
  sides.draw();
  await draw(place, { count, times, list });
}

export const keys = [{ key: 't', does: 'Go to the timeline', act: () => document.querySelector('.timeline [tabindex="0"]')?.focus() }];

const sortField = (place, again) => {
  const act = () => {
    const query = new URLSearchParams(place.query);
    query.delete('offset');
    if (select.value === 'recency') query.delete('sort');
    else query.set('sort', select.value);
    place.replace(query);
    again();
  };
  const select = h('select', { name: 'sort', 'aria-label': 'Order', on: { change: act } },
    Object.entries(SORTS).map(([value, text]) => h('option', { value, selected: value === sortOf(place) }, text)));
  return h('div', { class: 'order' }, select);
};

const sortOf = (place) => (place.query.get('sort') === 'importance' ? 'importance' : 'recency');

const draw = async (place, { count, times, list }) => {
  const filters = chosen(place.query);
  const { signal } = place;
  const sort = sortOf(place);
  const counted = api.get('/v1/days', { ...filters, utc_offset: utcOffset(), limit: MOST_DAYS }, { signal });
  const [page] = await Promise.all([
    api.get('/v1/memories', { ...filters, sort, limit: PAGE }, { signal }),
    // A position far down is found by the day counts, so they are needed first.
    place.query.has('offset') ? counted : null,
  ]);
  refill(count, `${page.total.toLocaleString('en')} ${page.total === 1 ? 'memory' : 'memories'}`);
  const days = [];
  const long = page.total > 0 && listOf(place, filters, sort, page, days);
  refill(list, long ? long.element : nothing(place));
  if (long) long.draw();
  const counts = await counted;
  days.push(...daysInOrder(counts));
  refill(times, timeline(place, counts));
  if (long) long.scrollTo(Number(place.query.get('offset')) || 0);
};

const listOf = (place, filters, sort, page, days) => {
  const pages = pagesOf({ filters, sort, days, signal: place.signal, arrived: () => long.draw() });
  pages.keep(0, page.memories);
  const { now, moved } = follower(place);
  const long = longList({ label: 'Memories', total: page.total, pages, row, moved, signal: place.signal });
  long.element.addEventListener('click', now); // before a link is followed
  return { ...long, scrollTo: (index) => index > 0 && long.scrollTo(index) };
};

const row = (memory) =>
  h('li', { class: 'memory', 'data-item': memory.id, tabindex: '-1' },
    h('h2', { class: 'name', dir: 'auto' }, h('a', { href: address('memory', [memory.id]), 'data-open': true }, titleOf(memory))),
    about(memory));

/** Keeps the first visible row in the address, for Back and for links. */
const follower = (place) => {
  let timer = 0;
  let first = 0;
  place.signal.addEventListener('abort', () => clearTimeout(timer));
  return {
    now: () => note(place, first),
    moved: (row) => {
      first = row;
      clearTimeout(timer);
      timer = setTimeout(() => note(place, first), REST_MS);
    },
  };
};

const note = (place, first) => {
  const query = new URLSearchParams(place.query);
  if (first > 0) query.set('offset', String(first));
  else query.delete('offset');
  if (query.toString() !== place.query.toString()) place.replace(query);
};

const nothing = (place) =>
  h('div', { class: 'card empty' }, h('h2', {}, 'No memories here'),
    [...place.query].length > 0 ? h('p', {}, h('a', { href: address(place.name) }, 'Remove all filters')) : h('p', {}, 'A connected agent stores what it learns.'));
