// Editing of a memory in place. Only changes are sent, with the revision that was read: if someone else has changed the
// memory since, their version is shown next to yours, and the user decides.

import { api } from '../api.js';
import { h, refill } from '../dom.js';
import { complain } from '../say.js';
import { tagField } from './tag-field.js';

const OUT_OF_DATE = 412;

/**
 * @param {object} memory as shown now, revealed or not
 * @param {{own: boolean, hidden: boolean, categories: string[]}} how own: every field may change; hidden: the text is
 *   masked and cannot be changed here
 * @param {{saved: (memory: object) => void, left: () => void}} then
 */
export const editForm = (memory, { own, hidden, categories }, { saved, left }) => {
  const fields = fieldsOf(memory, own, hidden, categories);
  const clash = h('div', {});
  const save = h('button', { type: 'submit', class: 'main' }, 'Save');
  let { revision } = memory;
  const submit = async (event) => {
    event.preventDefault();
    const changes = changed(memory, fields);
    if (!Object.keys(changes).length) return left();
    save.disabled = true;
    try {
      saved(await api.patch(pathOf(memory), changes, { headers: { 'If-Match': `"${revision}"` } }));
    } catch (error) {
      if (error.status === OUT_OF_DATE) revision = await showTheirs(memory, clash, save, left);
      else complain(error);
    } finally {
      save.disabled = false;
    }
    return undefined;
  };
  const key = (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    else if (event.key === 'Escape') left();
  };
  const form = h('form', { class: 'card edit', on: { submit, keydown: key } },
    h('h2', {}, 'Edit'), hidden && h('p', { class: 'note' }, 'The text is masked. Reveal it to change it.'),
    Object.values(fields).map((field) => field.element),
    h('div', { class: 'actions' }, h('span', { class: 'help grow' }, 'Ctrl+Enter saves, Escape cancels.'),
      h('button', { type: 'button', on: { click: left } }, 'Cancel'), save));
  return { element: h('div', { class: 'editing' }, clash, form), focus: () => form.querySelector('textarea, input, select')?.focus() };
};

const pathOf = (memory) => `/v1/memories/${memory.id}`;

const fieldsOf = (memory, own, hidden, categories) => {
  const text = !hidden && {
    title: line('Title', memory.title ?? '', { maxlength: '300' }, (value) => value || null),
    content: area('Text', memory.content),
  };
  const known = [...new Set([...categories, memory.category])];
  return {
    ...text,
    category: choice('Category', memory.category, known.map((name) => [name, name])),
    ...(own && { tags: tags(memory.tags) }),
    importance: line('Importance, 0 to 1', String(memory.importance), { type: 'number', min: '0', max: '1', step: '0.05' }, Number),
    ...(own && {
      valid_from: line('Valid from', memory.valid_from ?? '', { placeholder: '2026-11-03, tomorrow' }, (value) => value || null),
      valid_to: line('Valid until', memory.valid_to ?? '', { placeholder: '2026-11-03, next friday' }, (value) => value || null),
      scope: line('Scope', memory.scope, { maxlength: '200' }, (value) => value),
      state: choice('State', memory.state, [...new Set([memory.state, 'active', 'archived'])].map((name) => [name, name])),
      sensitive: check('Sensitive: masked, never embedded, never sent anywhere', memory.sensitive),
    }),
  };
};

const labelled = (label, control) => h('label', { class: 'field' }, h('span', {}, label), control);

const line = (label, value, more, read) => {
  const control = h('input', { value, autocomplete: 'off', ...more });
  return { element: labelled(label, control), value: () => read(control.value.trim()) };
};

const area = (label, value) => {
  const control = h('textarea', { value, rows: String(Math.min(Math.max(value.split('\n').length + 2, 6), 24)), required: true, dir: 'auto' });
  return { element: labelled(label, control), value: () => control.value };
};

const choice = (label, value, options) => {
  const control = h('select', {}, options.map(([one, text]) => h('option', { value: one, selected: one === value }, text)));
  return { element: labelled(label, control), value: () => control.value };
};

const check = (label, value) => {
  const control = h('input', { type: 'checkbox', checked: value });
  return { element: h('label', { class: 'check' }, control, h('span', {}, label)), value: () => control.checked };
};

const tags = (held) => tagField(held);

/** The fields that differ from the memory, apart from the line ends that form fields write. */
const changed = (memory, fields) =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.value()])
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(memory[name]) && value !== memory[name]?.replaceAll?.('\r\n', '\n')));

/** Shows the version that was saved meanwhile. @returns {Promise<number>} its revision */
const showTheirs = async (memory, clash, save, left) => {
  const theirs = await api.get(pathOf(memory));
  refill(clash, h('section', { class: 'card theirs', role: 'alert' },
    h('h2', {}, `Their version, revision ${theirs.revision}`),
    h('p', { class: 'note warn' }, 'Someone changed it while you were editing. Your changes are not saved yet.'),
    theirs.title && h('h3', { class: 'stored', dir: 'auto' }, theirs.title),
    h('div', { class: 'text stored', dir: 'auto' }, theirs.content),
    theirs.tags.length > 0 && h('p', { class: 'about' }, theirs.tags.map((tag) => h('span', { class: 'tag stored' }, tag))),
    h('div', { class: 'actions' }, h('button', { type: 'button', on: { click: left } }, 'Keep theirs'))));
  refill(save, 'Overwrite with yours');
  return theirs.revision;
};
