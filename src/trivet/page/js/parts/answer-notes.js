// Notes above the hits: that probably nothing is relevant, and problems with the answer.

import { h } from '../dom.js';
import { legName, percent } from './bars.js';

/** @param {object} answer of a recall */
export const answerNotes = (answer) => [nothing(answer), troubles(answer)];

const nothing = (answer) => {
  const likely = answer.best_relevance === null ? null : percent(answer.best_relevance);
  if (answer.nothing_relevant && answer.hits.length) {
    return h('p', { class: 'note' }, h('strong', {}, 'Probably nothing here is relevant.'), h('span', {}, ` The best candidate is only ${likely} likely to be.`));
  }
  if (answer.hits.length) return null;
  return h('div', { class: 'card empty' }, h('h2', {}, 'Nothing found'),
    h('p', {}, likely ? `The best candidate is only ${likely} likely to be relevant.` : 'No memory within the filters matches.'));
};

const troubles = (answer) => {
  const said = [...sentences(answer)];
  return said.length > 0 && h('ul', { class: 'note warn' }, said.map((text) => h('li', { class: 'stored' }, text)));
};

function* sentences({ health, asked, truncated }) {
  for (const leg of health.legs) {
    if (!leg.answered) yield `The search by ${legName(leg.leg)} did not answer: ${leg.reason}.`;
  }
  if (health.not_embedded) yield `${health.not_embedded} of ${health.memories} memories are not embedded yet: only words find them.`;
  if (health.not_in_graph) yield `${health.not_in_graph} of ${health.memories} memories are not in the graph yet.`;
  if (health.failing_jobs) yield `${health.failing_jobs} jobs fail: ${health.last_error}.`;
  for (const note of health.notes) yield `${note}.`;
  if (asked.length) yield `The first answer was uncertain, so the server also searched for: ${asked.join('; ')}.`;
  if (truncated) yield 'The token budget cut the answer short.';
}
