// "Why not this one?": the server's reason for a memory that is given by id or picked from a search.

import { api, isAbort } from '../api.js';
import { h, refill } from '../dom.js';
import { complain } from '../say.js';
import { dialog } from './dialog.js';
import { cut, memoryLink, titleOf } from './memory.js';
import { legTable } from './why.js';

const PAUSE_MS = 200;
const OFFERED = 8;
const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i;

/** @param {string} query of the search @param {Record<string, any>} filters of the search */
export const whyNotDialog = (query, filters) => {
  const offers = h('ul', { class: 'offers' });
  const verdict = h('div', { class: 'stack', 'aria-live': 'polite' });
  const explain = (id, name) => explained(query, filters, id, name, verdict);
  const offer = offerer(offers, explain);
  const field = h('input', { 'data-picker': true, placeholder: 'Words from the memory, or its id', autocomplete: 'off', spellcheck: 'false', on: { input: () => offer(field.value.trim()) } });
  const box = dialog('Why not this one?',
    h('p', { class: 'help stored' }, `Which memory did you expect for “${cut(query, 120)}”?`),
    h('label', { class: 'field' }, h('span', {}, 'Memory'), field), offers, verdict);
  box.classList.add('wide');
  field.focus();
};

/** Offers what the words find, or explains an id at once. */
const offerer = (offers, explain) => {
  let timer = 0;
  let older = new AbortController();
  return (text) => {
    clearTimeout(timer);
    older.abort();
    if (ID.test(text)) {
      refill(offers);
      explain(text);
    } else if (text) {
      older = new AbortController();
      timer = setTimeout(() => drawOffers(text, offers, explain, older.signal), PAUSE_MS);
    }
  };
};

const drawOffers = async (text, offers, explain, signal) => {
  try {
    const answer = await api.post('/v1/recall', { query: text, limit: OFFERED, relevance_at_least: 0 }, { signal });
    const button = (hit) => h('button', { type: 'button', class: 'quiet stored', on: { click: () => { refill(offers); explain(hit.id, titleOf(hit)); } } }, titleOf(hit));
    refill(offers, answer.hits.length ? answer.hits.map((hit) => h('li', {}, button(hit))) : h('li', { class: 'help' }, 'No memory matches.'));
  } catch (error) {
    if (!isAbort(error)) complain(error);
  }
};

const explained = async (query, filters, id, name, verdict) => {
  try {
    const found = await api.post('/v1/why-not', { query, ...filters, id });
    refill(verdict,
      h('h3', {}, memoryLink(found.id, name ? { [found.id]: name } : {})),
      h('p', { class: `note ${found.returned ? 'good' : 'warn'}` }, found.returned ? `It was returned, at rank ${found.rank}. ` : '', found.verdict),
      found.reasons.length > 0 && h('ul', { class: 'reasons stored' }, found.reasons.map((reason) => h('li', {}, reason))),
      Object.keys(found.legs).length > 0 && legTable(found.legs));
  } catch (error) {
    refill(verdict, h('p', { class: 'note wrong' }, error.message));
  }
};
