// Edits that conflict with a memory: each with its differences, and a decision that settles all of them.

import { api } from '../api.js';
import { h, refill, stored } from '../dom.js';
import { complain, say } from '../say.js';
import { may } from '../session.js';
import { diffLines } from './diff.js';
import { ask } from './dialog.js';
import { when } from './when.js';

const PATH = '/v1/sync/conflicts';

/** The conflicts of one memory; without an id, of all that the user may read. */
export const clashes = (id, signal, reveal = false) => api.get(PATH, { id, ...(reveal ? { reveal } : {}) }, { signal });

/**
 * @param {{memory: object, may: {edit: boolean}, place: object, again: () => Promise<void>}} view
 * @param {object[]} found
 */
export const conflictPart = (view, found) => {
  if (!found.length) return null;
  const part = h('section', { class: 'card stack conflicts', 'aria-labelledby': 'conflicts' });
  drawConflicts(view, part, found);
  return part;
};

const drawConflicts = (view, part, found) => {
  const open = !found.some((one) => one.masked);
  refill(part,
    h('h2', { id: 'conflicts' }, found.length === 1 ? 'A conflicting edit' : `${found.length} conflicting edits`),
    h('p', { class: 'help' }, 'Both changed the same words. The memory stays as it is until someone decides; all texts stay in the history.'),
    !open && h('p', { class: 'masked' }, h('span', { class: 'state sensitive' }, 'masked'),
      may('reveal') && h('button', { type: 'button', on: { click: () => reveal(view, part) } }, 'Reveal')),
    found.map((one) => conflict(view, one, open)),
    view.may.edit && open && h('div', { class: 'row' },
      h('button', { type: 'button', on: { click: () => settle(view, {}, 'The memory stays as it is.') } }, 'Keep the memory as it is'),
      texts(found).length > 0 && h('button', { type: 'button', on: { click: () => write(view, texts(found)) } }, 'Write another text')));
};

const conflict = (view, one, open) =>
  h('article', { class: 'stack tight' },
    h('h3', {}, 'From the memory to the edit by ', stored(one.author), ', ', when(one.at)),
    open && diffLines(one.diff),
    view.may.edit && open && h('div', {}, h('button', { type: 'button', class: 'main', 'data-take': one.rev, on: { click: () => settle(view, { take: one.rev }, `The edit by ${one.author} was accepted.`) } }, 'Accept this edit')));

const reveal = async (view, part) => {
  try {
    drawConflicts(view, part, await clashes(view.memory.id, view.place.signal, true));
    say('Shown. The audit record notes that you looked.');
  } catch (error) {
    complain(error);
  }
};

const texts = (found) => found.map((one) => one.branch.content).filter(Boolean);

/** Starts from the last text shown, which is not the memory's. */
const write = async (view, others) => {
  const content = await ask('Write another text', { label: 'New text of the memory', value: others.at(-1), action: 'Save', long: true });
  if (content !== null) await settle(view, { content }, 'The memory now has your text.');
};

const settle = async (view, decision, said) => {
  try {
    await api.post(`${PATH}/${view.memory.id}`, decision);
    say(said);
    await view.again();
  } catch (error) {
    complain(error);
  }
};
