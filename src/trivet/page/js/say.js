// The status line at the bottom of the page, which screen readers announce: say('Forgotten.', {undo: async () => ...})
// for results and complain(problem) for errors.

import { isAbort } from './api.js';
import { h, refill } from './dom.js';

// Long enough to read two sentences and reach Undo.
const SHOWN_MS = 8_000;
let timer = 0;

/** @param {string} text @param {{undo?: () => Promise<any>}} [options] */
export const say = (text, { undo } = {}) => show('', text, undo);

/** Shows an error until the next message; aborts by the user are not reported. */
export const complain = (error) => {
  if (isAbort(error) || error?.status === 401) return;
  show('wrong', error?.message || 'The request failed.');
  clearTimeout(timer);
};

export const hush = () => refill(document.getElementById('status'));

const show = (kind, text, undo) => {
  clearTimeout(timer);
  const line = document.getElementById('status');
  const close = h('button', { type: 'button', class: 'quiet', 'aria-label': 'Close', on: { click: hush } }, '×');
  refill(line, h('p', { class: kind }, h('span', {}, text), undo && undoButton(undo), close));
  timer = setTimeout(hush, SHOWN_MS);
};

const undoButton = (undo) => {
  const act = async (event) => {
    event.currentTarget.disabled = true;
    try {
      await undo();
      say('Undone.');
    } catch (error) {
      complain(error);
    }
  };
  return h('button', { type: 'button', on: { click: act } }, 'Undo');
};
