// A timeline: bars for the memories created per day, month or year. A bar is a link that filters by its time, so clicking
// a month shows its days. It is one Tab stop; arrow keys move between bars.

import { address } from '../address.js';
import { h, s } from '../dom.js';
import { dayAfter, startOf } from './days.js';

const MOST_BARS = 92;
const HEIGHT = 48;
const STEP = 10;
const UNITS = [
  { length: 10, following: (day) => dayAfter(day), first: (name) => name },
  { length: 7, following: (month) => monthAfter(month), first: (name) => `${name}-01` },
  { length: 4, following: (year) => String(Number(year) + 1).padStart(4, '0'), first: (name) => `${name}-01-01` },
];

/** @param {import('../view.js').Place} place @param {{name: string, memories: number}[]} counts newest first */
export const timeline = (place, counts) => {
  if (!counts.length) return null;
  const { unit, bars } = grouped(counts);
  const most = Math.max(...bars.map((bar) => bar.memories));
  const links = bars.map((bar, number) => barLink(place, unit, bar, number, most));
  links[links.length - 1].setAttribute('tabindex', '0');
  const drawing = s('svg', { class: 'timeline', viewBox: `0 0 ${bars.length * STEP} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'group', 'aria-label': 'Memories over time', style: { '--bars': String(bars.length) }, on: { keydown: walk } }, links);
  return h('figure', { class: 'over-time' }, drawing,
    h('figcaption', { class: 'row apart help' }, h('span', {}, said(bars[0].name)), bars.length > 1 && h('span', {}, said(bars[bars.length - 1].name))));
};

/** Bars of the finest unit that fits, including empty ones, oldest first. */
const grouped = (counts) => {
  const newest = counts[0].name;
  const oldest = counts[counts.length - 1].name;
  for (const unit of UNITS) {
    const names = between(oldest.slice(0, unit.length), newest.slice(0, unit.length), unit);
    if (names.length > MOST_BARS && unit !== UNITS[UNITS.length - 1]) continue;
    const held = new Map(names.map((name) => [name, 0]));
    for (const { name, memories } of counts) {
      const key = name.slice(0, unit.length);
      if (held.has(key)) held.set(key, held.get(key) + memories);
    }
    return { unit, bars: [...held].map(([name, memories]) => ({ name, memories })) };
  }
  return undefined;
};

const between = (first, last, unit) => {
  const names = [];
  for (let name = last; name >= first && names.length <= MOST_BARS; name = unitBefore(name, unit)) names.unshift(name);
  return names;
};

const unitBefore = (name, unit) => dayAfter(unit.first(name), -1).slice(0, unit.length);

const monthAfter = (month) => dayAfter(`${month}-01`, 31).slice(0, 7);

const barLink = (place, unit, { name, memories }, number, most) => {
  const high = memories ? Math.max((memories / most) * (HEIGHT - 2), 2) : 0;
  const text = `${said(name)}: ${memories.toLocaleString('en')} ${memories === 1 ? 'memory' : 'memories'}`;
  return s('a', { href: narrowed(place, unit, name), 'aria-label': text, tabindex: '-1' },
    s('title', {}, text),
    s('rect', { class: 'reach', x: String(number * STEP), y: '0', width: String(STEP), height: String(HEIGHT) }),
    s('rect', { class: 'full', x: String(number * STEP + 1), y: String(HEIGHT - high), width: String(STEP - 2), height: String(high) }));
};

const narrowed = (place, unit, name) => {
  const query = new URLSearchParams(place.query);
  query.delete('offset');
  query.set('created_after', startOf(unit.first(name)));
  query.set('created_before', startOf(unit.first(unit.following(name))));
  return address(place.name, place.path, query);
};

const walk = (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const links = [...event.currentTarget.children];
  const next = step && links[links.indexOf(event.target.closest('a')) + step];
  if (!next) return;
  event.preventDefault();
  for (const link of links) link.setAttribute('tabindex', link === next ? '0' : '-1');
  next.focus();
};

const FORMS = { 4: { year: 'numeric' }, 7: { month: 'short', year: 'numeric' }, 10: { day: 'numeric', month: 'short', year: 'numeric' } };

const said = (name) =>
  new Date(`${name.padEnd(7, '-01').padEnd(10, '-01')}T00:00:00Z`).toLocaleDateString('en-GB', { ...FORMS[name.length], timeZone: 'UTC' });
