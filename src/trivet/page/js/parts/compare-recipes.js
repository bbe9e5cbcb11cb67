// Two recipes side by side on one query: their hits, what moved, and which leg caused it.

import { address } from '../address.js';
import { api } from '../api.js';
import { h, refill } from '../dom.js';
import { gradeButtons, pressed } from './grades.js';
import { bars, percent } from './bars.js';
import { titleOf } from './memory.js';
import { legChanges, moveMark } from './moves.js';

const LIMIT = 20;
export const RECIPES = ['rrf(k=60)', 'rrf | legs(lexical)', 'rrf | legs(dense)', 'rrf | legs(lexical, dense)', 'convex(norm=minmax)', 'rrf(k=60) | depth(50)'];

/** @returns {Promise<void>} when both answers are shown */
export const compareRecipes = async (place, room, { query, a, b }, grades, graded) => {
  const ask = (recipe) => api.post('/v1/recall', { query, limit: LIMIT, relevance_at_least: 0, ...(recipe ? { recipe } : {}) }, { signal: place.signal });
  const [one, other] = await Promise.all([ask(a), ask(b)]);
  const places = [placesOf(one), placesOf(other)];
  refill(room, summary(one, other, places),
    h('div', { class: 'sides' }, side('A', one, places[0], places[1], query, grades, graded, false), side('B', other, places[1], places[0], query, grades, graded, true)));
};

const placesOf = (answer) => new Map(answer.hits.map((hit) => [hit.id, hit]));

const summary = (one, other, [before, after]) => {
  const [gone, added] = [[...before.keys()].filter((id) => !after.has(id)).length, [...after.keys()].filter((id) => !before.has(id)).length];
  const moved = [...after].filter(([id, hit]) => before.has(id) && before.get(id).rank !== hit.rank).length;
  const text = gone + added + moved === 0 ? 'Both give the same answer.' : `${moved} moved, ${added} new, ${gone} gone.`;
  return h('p', { class: 'note', role: 'status' }, `${text} ${Math.round(one.took_ms)} ms and ${Math.round(other.took_ms)} ms.`);
};

const side = (name, answer, own, others, query, grades, graded, isAfter) =>
  h('section', { class: 'stack', 'aria-label': `Recipe ${name}` },
    h('h2', {}, `Recipe ${name}`),
    h('details', {}, h('summary', { class: 'help' }, 'Full recipe'), h('code', {}, answer.recipe)),
    answer.hits.length
      ? h('ol', { class: 'list' }, answer.hits.map((hit) => item(hit, others.get(hit.id) ?? null, query, grades, graded, isAfter)))
      : h('p', { class: 'help' }, 'Nothing found.'));

const item = (hit, other, query, grades, graded, isAfter) => {
  const [before, after] = isAfter ? [other, hit] : [hit, other];
  const why = other && before.rank !== after.rank ? changes(before, after) : []; // hits that did not move need no reason
  return h('li', { class: 'compared', 'data-item': hit.id, tabindex: '-1' },
    h('h3', { class: 'name', dir: 'auto' }, `${hit.rank}. `, h('a', { class: 'stored', 'data-open': true, href: address('memory', [hit.id]) }, titleOf(hit))),
    h('div', { class: 'row' },
      // The left side marks what is gone, the right side what moved.
      (isAfter || !other) && moveMark(before?.rank ?? null, after?.rank ?? null), bars(hit.why.legs), h('span', { class: 'help' }, `${hit.strength} ${percent(hit.relevance)}`),
      gradeButtons(grades.of(query, hit.id), `hit ${hit.rank}`, (grade) => graded(hit.id, grade))),
    isAfter && why.length > 0 && h('p', { class: 'help' }, why.join('; ')));
};

const changes = (before, after) => [
  ...legChanges(gave(before), gave(after)),
  ...(Math.abs(before.why.bonus - after.why.bonus) > 0.005 ? [`exact words +${before.why.bonus.toFixed(2)} → +${after.why.bonus.toFixed(2)}`] : []),
  ...(before.why.rerank?.rank !== after.why.rerank?.rank ? [`reranker ${readAs(before)} → ${readAs(after)}`] : []),
];

const gave = (hit) =>
  Object.fromEntries(Object.entries(hit.why.legs).map(([leg, part]) => [leg, { rank: part.rank, gave: part.rank === null ? 0 : part.normalised * part.weight }]));

const readAs = (hit) => (hit.why.rerank ? `#${hit.why.rerank.rank}` : 'not read');

/** Shows a grade on every hit of the memory. */
export const showGrade = (room, id, grade) =>
  room.querySelectorAll(`[data-item="${CSS.escape(id)}"] .grades`).forEach((group) => pressed(group, grade));
