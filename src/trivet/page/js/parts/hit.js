// A hit of a recall: the memory, its relevance, its rank in each leg, and newer or older memories on the same topic. Its
// "Why" opens in place.

import { h, refill, unseen } from '../dom.js';
import { bars, percent } from './bars.js';
import { cut, memoryItem, titleOf } from './memory.js';
import { namedLink } from './named-link.js';
import { whyPath } from './why.js';

/** @param {object} hit @param {object} answer that it belongs to */
export const hitItem = (hit, answer) => {
  const names = Object.fromEntries(answer.hits.map((one) => [one.id, titleOf(one)]));
  const panel = h('div', { class: 'why', id: `why-${hit.id}`, hidden: true });
  const button = h('button', {
    type: 'button', class: 'small quiet', 'data-why': true, 'aria-expanded': 'false', 'aria-controls': panel.id,
    on: { click: () => turn(button, panel, () => whyPath(hit, names)) },
  }, 'Why');
  const item = memoryItem(hit, {
    words: hit.why.matched_words,
    passage: hit.passage,
    before: h('span', { class: 'rank' }, unseen('Hit '), hit.rank),
    after: [h('div', { class: 'measure' }, bars(hit.why.legs), relevance(hit), button), relations(hit, names), panel],
  });
  item.classList.add('hit');
  return item;
};

export const toggleWhy = (item) => item.querySelector('[data-why]')?.click();

const turn = (button, panel, content) => {
  panel.hidden = !panel.hidden;
  button.setAttribute('aria-expanded', String(!panel.hidden));
  if (!panel.hidden && !panel.children.length) refill(panel, content());
};

const relevance = (hit) =>
  h('span', { class: `state ${hit.strength}`, title: `${percent(hit.relevance)} likely to be relevant` }, `${hit.strength} ${percent(hit.relevance)}`);

/** Newer and older memories on the same topic, resolutions and conflicts. */
const relations = (hit, names) => {
  const { why } = hit;
  const rows = [
    why.older_than && ['A newer memory may have replaced this:', [why.older_than], 'warn'],
    why.newer_than.length && ['Newer than:', why.newer_than],
    why.redirected_from.length && ['Found through what it supersedes:', why.redirected_from],
    hit.resolved_by.length && ['Resolved by:', hit.resolved_by.map((one) => one.id)],
    why.conflicts.length && ['A conflicting edit waits for a decision.', [], 'warn'],
  ].filter(Boolean);
  const known = { ...names, ...Object.fromEntries(hit.resolved_by.map((one) => [one.id, cut(one.content, 120)])) };
  return rows.length > 0 && h('ul', { class: 'relations' }, rows.map(([text, ids, kind]) => h('li', { class: kind ?? '' }, text, ids.map((id) => [' ', namedLink(id, known)]))));
};
