// Picks a memory by its words or its id: await pick('Which one?', {except: id, words: 'staging'}) -> the memory, or
// null if the user cancels.

import { api, isAbort } from '../api.js';
import { h, refill } from '../dom.js';
import { complain } from '../say.js';
import { dialog } from './dialog.js';
import { titleOf } from './memory.js';
import { when } from './when.js';

const PAUSE_MS = 200;
const OFFERED = 8;
const LONGEST_QUERY = 1_000;
const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i;

/** @param {string} title @param {{except?: string, words?: string, help?: string, action?: string}} [options] */
export const pick = (title, { except, words = '', help, action = 'Choose' } = {}) =>
  new Promise((resolve) => {
    let picked = null;
    const take = (memory) => {
      picked = memory;
      box.close();
    };
    const offers = h('ul', { class: 'offers' });
    const offer = offerer(offers, except, take, action);
    const field = h('input', { type: 'search', 'data-picker': true, value: words.slice(0, LONGEST_QUERY), maxlength: String(LONGEST_QUERY), placeholder: 'Words from the memory, or its id', autocomplete: 'off', spellcheck: 'false', on: { input: () => offer(field.value.trim()) } });
    const box = dialog(title, help && h('p', { class: 'help' }, help), h('label', { class: 'field' }, h('span', {}, 'Memory'), field), offers);
    box.classList.add('wide');
    box.addEventListener('close', () => resolve(picked));
    field.select();
    field.focus();
    offer(field.value.trim());
  });

const offerer = (offers, except, take, action) => {
  let timer = 0;
  let older = new AbortController();
  return (text) => {
    clearTimeout(timer);
    older.abort();
    older = new AbortController();
    const { signal } = older;
    if (text) timer = setTimeout(() => draw(text, offers, except, take, action, signal), PAUSE_MS);
    else refill(offers);
  };
};

const draw = async (text, offers, except, take, action, signal) => {
  try {
    const found = (await matching(text, signal)).filter((one) => one.id !== except);
    refill(offers, found.length ? found.map((memory) => h('li', {}, button(memory, take, action))) : h('li', { class: 'help' }, 'No memory matches.'));
  } catch (error) {
    if (!isAbort(error)) complain(error);
  }
};

const matching = async (text, signal) => {
  if (ID.test(text)) return [await api.get(`/v1/memories/${text}`, {}, { signal })];
  return (await api.post('/v1/recall', { query: text, limit: OFFERED, relevance_at_least: 0, rerank: 'off' }, { signal })).hits;
};

const button = (memory, take, action) =>
  h('button', { type: 'button', class: 'quiet offer', title: action, on: { click: () => take(memory) } },
    h('span', { class: 'stored', dir: 'auto' }, titleOf(memory)), h('span', { class: 'help' }, when(memory.created_at)));
