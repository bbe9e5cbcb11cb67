// What stands above the hits: that probably nothing is relevant, and whatever was amiss with the answer. Silence means
// that all worked.

import { h } from '../dom.js';
import { legName, percent } from './bars.js';

/** @param {object} answer of a recall */
export const answerNotes = (answer) => [nothing(answer), troubles(answer)];

const nothing = (answer) => {
  const likely = answer.best_relevance === null ? null : percent(answer.best_relevance);
  if (answer.nothing_relevant && answer.hits.length) {
    return h('p', { class: 'note' }, h('strong', {}, 'Probably nothing here is relevant.'), h('span', {}, ` The likeliest is ${likely} likely to be. The best candidates are below.`));
  }
  if (answer.hits.length) return null;
  return h('div', { class: 'card empty' }, h('h2', {}, 'Nothing was found'),
    h('p', {}, likely ? `The likeliest candidate is only ${likely} likely to be relevant.` : 'No memory within the filters matches.'));
};

const troubles = (answer) => {
  const said = [...sentences(answer)];
  return said.length > 0 && h('ul', { class: 'note warn' }, said.map((text) => h('li', { class: 'stored' }, text)));
};

function* sentences({ health, asked, truncated }) {
  for (const leg of health.legs) {
    if (!leg.answered) yield `The search by ${legName(leg.leg)} did not answer: ${leg.reason}.`;
  }
  if (health.not_embedded) yield `${health.not_embedded} of ${health.memories} memories are not embedded yet: words alone find them.`;
  if (health.not_in_graph) yield `${health.not_in_graph} of ${health.memories} memories are not in the graph yet.`;
  if (health.failing_jobs) yield `${health.failing_jobs} jobs fail: ${health.last_error}.`;
  for (const note of health.notes) yield `${note}.`;
  if (asked.length) yield `The first answer was unsure, so this was asked too: ${asked.join('; ')}.`;
  if (truncated) yield 'The token budget cut the answer short.';
}
