// The form for editing a proposal in place.

import { h } from '../dom.js';
import { tagField } from './tag-field.js';

/** @param {object} proposal @param {string[]} categories @param {{save: (changes: object, accept: boolean) => void, left: () => void}} then */
export const proposalForm = (proposal, categories, { save, left }) => {
  const content = h('textarea', { value: proposal.content, rows: '4', required: true, dir: 'auto' });
  const known = [...new Set([...categories, proposal.category])];
  const category = h('select', {}, known.map((name) => h('option', { value: name, selected: name === proposal.category }, name)));
  const tags = tagField(proposal.tags);
  const send = (accept) => save(changes(proposal, { content: content.value, category: category.value, tags: tags.value() }), accept);
  const key = (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send(true);
    else if (event.key === 'Escape') left();
  };
  const form = h('form', { class: 'edit', on: { submit: (event) => { event.preventDefault(); send(false); }, keydown: key } },
    h('label', { class: 'field' }, h('span', {}, 'Text'), content),
    h('label', { class: 'field' }, h('span', {}, 'Category'), category),
    tags.element,
    h('div', { class: 'actions' }, h('span', { class: 'help grow' }, 'Ctrl+Enter saves and accepts, Escape cancels.'),
      h('button', { type: 'button', on: { click: left } }, 'Cancel'), h('button', { type: 'submit' }, 'Save'),
      h('button', { type: 'button', class: 'main', on: { click: () => form.reportValidity() && send(true) } }, 'Save and accept')));
  return { element: form, focus: () => content.focus() };
};

const changes = (proposal, given) =>
  Object.fromEntries(Object.entries(given).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(proposal[name])));
