// Questions in the browser's own dialog, which traps and restores the focus.
// dialog(title, ...content) only shows; confirm(title, text, action) -> true or false;
// ask(title, {label, value, action, long}) -> the text, or null if the user cancels.

import { h } from '../dom.js';

let number = 0;

/** @returns {HTMLDialogElement} the open dialog; it is removed when it closes */
export const dialog = (title, ...content) => {
  const id = `dialog-${(number += 1)}`;
  const close = h('button', { type: 'button', class: 'quiet', 'aria-label': 'Close', on: { click: () => box.close() } }, '×');
  const box = h('dialog', { 'aria-labelledby': id }, h('header', {}, h('h2', { id }, title), close), ...content);
  box.addEventListener('close', () => box.remove());
  box.addEventListener('click', (event) => event.target === box && box.close()); // outside it
  document.body.append(box);
  box.showModal();
  return box;
};

/** @returns {Promise<boolean>} */
export const confirm = (title, text, action = 'Yes', { danger = false } = {}) =>
  new Promise((resolve) => {
    let sure = false;
    const yes = h('button', { type: 'button', class: danger ? 'danger' : 'main', on: { click: () => { sure = true; box.close(); } } }, action);
    const no = h('button', { type: 'button', on: { click: () => box.close() } }, 'Cancel');
    const box = dialog(title, h('p', {}, text), h('div', { class: 'actions' }, no, yes));
    box.addEventListener('close', () => resolve(sure));
    (danger ? no : yes).focus();
  });

/** @returns {Promise<string | null>} */
export const ask = (title, { label, value = '', action = 'Save', long = false } = {}) =>
  new Promise((resolve) => {
    let answer = null;
    const field = h(long ? 'textarea' : 'input', { value, rows: long ? '6' : null, required: true });
    const done = (event) => {
      event.preventDefault();
      answer = field.value;
      box.close();
    };
    const no = h('button', { type: 'button', on: { click: () => box.close() } }, 'Cancel');
    const form = h('form', { on: { submit: done } },
      h('label', { class: 'field' }, h('span', {}, label ?? title), field),
      h('div', { class: 'actions' }, no, h('button', { type: 'submit', class: 'main' }, action)));
    const box = dialog(title, form);
    box.addEventListener('close', () => resolve(answer));
    field.focus();
  });
