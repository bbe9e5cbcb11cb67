// How a hit got its score: what each leg found, the fusion, and every later step.

import { h, stored } from '../dom.js';
import { legName, LEGS, percent } from './bars.js';
import { namedLink } from './named-link.js';

/** @param {object} hit @param {Record<string, string>} names of the other hits, by id */
export const whyPath = (hit, names) => [legTable(hit.why.legs), stepList(hit), graphPath(hit, names), others(hit.why, names)];

/** Also used by why-not, which has only the legs. */
export const legTable = (legs) => {
  const known = [...Object.keys(LEGS).filter((leg) => leg in legs), ...Object.keys(legs).filter((leg) => !(leg in LEGS))];
  return h('table', { class: 'legs' },
    h('caption', { class: 'unseen' }, 'What each leg found'),
    h('thead', {}, h('tr', {}, ['Found by', 'Rank', 'Score', 'Scaled', 'Weight'].map((text, at) => h('th', { scope: 'col', class: at ? 'number' : '' }, text)))),
    h('tbody', {}, known.map((leg) => legRow(leg, legs[leg]))));
};

const legRow = (leg, part) =>
  h('tr', {},
    h('th', { scope: 'row' }, h('span', { class: `dot ${leg}` }), legName(leg), part.estimated && ' (estimated)'),
    ...(part.rank === null
      ? [h('td', { class: 'number', colspan: '2' }, 'not returned'), cell(part.normalised.toFixed(2))]
      : [cell(`#${part.rank}`), cell(part.score.toFixed(2)), cell(part.normalised.toFixed(2))]),
    cell(percent(part.weight)));

const cell = (text) => h('td', { class: 'number' }, text);

/** The steps from the fused score to the final one. */
const stepList = (hit) => {
  const { why } = hit;
  const steps = [
    ['All legs fused', why.fused.toFixed(3)],
    why.exactness > 0 && [`Exact words or identifiers (${percent(why.exactness)} of them)`, `+${why.bonus.toFixed(3)}`],
    why.prior !== 1 && ['Importance', `×${why.prior.toFixed(3)}`],
    (why.time || why.time_factor !== 1) && [why.time ?? 'Outside the time in the query', `×${why.time_factor.toFixed(2)}`],
    why.rerank && [`Reranked: rank ${why.rerank.rank}, score ${why.rerank.score.toFixed(2)}, weight ${percent(why.rerank.weight)}`, why.blended?.toFixed(3) ?? ''],
    why.newer_than.length > 0 && ['Ranked before an older memory on the same topic', ''],
    why.older_than && ['Ranked after a newer memory on the same topic', ''],
    ['Score', hit.score.toFixed(3)],
    [`Relevance: ${hit.strength}`, percent(hit.relevance)],
  ].filter(Boolean);
  return h('dl', { class: 'steps' }, steps.map(([text, number]) => [h('dt', {}, text), h('dd', {}, number)]));
};

/** The path from the query to this memory. */
const graphPath = ({ why }, names) => {
  if (!why.path.length) return null;
  const steps = why.path.map((step) => (step.kind === 'memory' ? namedLink(step.name, names) : h('strong', {}, stored(step.name))));
  return h('p', { class: 'path' }, 'Through the graph: your words ', steps.map((step) => ['→ ', step, ' ']), '→ this memory');
};

const others = (why, names) => {
  const rows = [
    why.matched_words.length && ['Words of the query in it: ', h('span', {}, stored(why.matched_words.join(', ')))],
    why.collapsed.length && ['Duplicates merged into it: ', links(why.collapsed, names)],
    why.yields_to.length && ['A page of links, ranked after the notes on it: ', links(why.yields_to, names)],
  ].filter(Boolean);
  return rows.length > 0 && h('ul', { class: 'relations' }, rows.map((row) => h('li', {}, row)));
};

const links = (ids, names) => ids.map((id, at) => [at > 0 && ', ', namedLink(id, names)]);
