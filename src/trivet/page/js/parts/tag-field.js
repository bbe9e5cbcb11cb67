// Editable tags: each with a button to remove it, and a field for the next.
// tagField(['a', 'b']) -> {element, value()}.

import { h, refill, stored } from '../dom.js';

const LONGEST_TAG = '64';

/** @param {string[]} tags */
export const tagField = (tags) => {
  let held = [...tags];
  const chips = h('ul', { class: 'chips' });
  const field = h('input', { maxlength: LONGEST_TAG, placeholder: 'add a tag', 'aria-label': 'Add a tag', autocomplete: 'off', on: { keydown: (event) => event.key === 'Enter' && !event.ctrlKey && add(event), blur: () => add() } });
  const add = (event) => {
    event?.preventDefault();
    const tag = field.value.trim();
    field.value = '';
    if (tag && !held.includes(tag)) held = [...held, tag];
    draw();
  };
  const remove = (tag) => {
    held = held.filter((one) => one !== tag);
    draw();
    field.focus();
  };
  const draw = () => {
    refill(chips, held.map((tag) => h('li', {}, stored(tag), h('button', { type: 'button', class: 'quiet', 'aria-label': `Remove the tag ${tag}`, on: { click: () => remove(tag) } }, '×'))));
    chips.hidden = !held.length;
  };
  draw();
  const element = h('div', { class: 'field', role: 'group', 'aria-label': 'Tags' }, h('span', {}, 'Tags'), chips, field);
  return { element, value: () => (field.value.trim() ? [...new Set([...held, field.value.trim()])] : held) };
};
