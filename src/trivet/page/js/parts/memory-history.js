// The revisions of a memory: the difference between any two, and restoring one.

import { api, isAbort } from '../api.js';
import { h, refill } from '../dom.js';
import { complain, say } from '../say.js';
import { diffLines } from './diff.js';
import { when } from './when.js';

const ACTS = { remember: 'stored', edit: 'edited', forget: 'forgotten', restore: 'restored', import: 'imported', redact: 'redacted' };

/** @param {{memory: object, may: {own: boolean}, place: object, again: () => Promise<void>}} view */
export const historyPart = (view, revisions) => {
  const diff = h('div', { class: 'difference', 'aria-live': 'polite' });
  const [last] = revisions.slice(-1);
  const chosen = { older: Math.max(last.revision - 1, 1), newer: last.revision };
  const compare = () => drawDiff(view, chosen, diff);
  const rows = revisions.toReversed().map((revision) => row(view, revision, chosen, compare, revisions.length > 1));
  if (revisions.length > 1) compare();
  return h('section', { class: 'card stack', 'aria-labelledby': 'history' },
    h('h2', { id: 'history', tabindex: '-1' }, 'History'),
    h('table', { class: 'revisions' },
      h('thead', {}, h('tr', {}, ['Revision', 'Action', 'From', 'To', ''].map((text) => h(text ? 'th' : 'td', text ? { scope: 'col' } : {}, text)))),
      h('tbody', {}, rows)),
    revisions.length > 1 && diff);
};

const row = (view, { revision, action, changed_at: at }, chosen, compare, several) => {
  const radio = (name, label) => several && h('input', {
    type: 'radio', name, checked: chosen[name] === revision, 'aria-label': `${label} revision ${revision}`,
    on: { change: () => { chosen[name] = revision; compare(); } },
  });
  const current = revision === view.memory.revision;
  return h('tr', {},
    h('th', { scope: 'row' }, revision), h('td', {}, ACTS[action] ?? action, ' ', when(at)),
    h('td', {}, radio('older', 'From')), h('td', {}, radio('newer', 'To')),
    h('td', { class: 'number' }, current ? 'now' : view.may.own && h('button', { type: 'button', class: 'small', 'aria-label': `Restore revision ${revision}`, on: { click: () => restore(view, revision) } }, 'Restore')));
};

const drawDiff = async ({ memory, place }, { older, newer }, diff) => {
  try {
    const found = await api.get(`/v1/memories/${memory.id}/diff`, { older, newer }, { signal: place.signal });
    refill(diff, h('h3', {}, `From revision ${older} to ${newer}`), diffLines(found.diff));
  } catch (error) {
    if (!isAbort(error)) complain(error);
  }
};

/** Restores as a new revision, so nothing is lost; undo restores the one before. */
const restore = async (view, revision) => {
  const { memory } = view;
  const bring = (number, expected) => api.post(`/v1/memories/${memory.id}/restore`, { revision: number }, { headers: { 'If-Match': `"${expected}"` } });
  try {
    const made = await bring(revision, memory.revision);
    const undo = async () => {
      await bring(memory.revision, made.revision);
      await view.again();
    };
    say(`Revision ${revision} restored as revision ${made.revision}.`, { undo: memory.state === 'deleted' ? undefined : undo });
    await view.again();
  } catch (error) {
    complain(error);
  }
};
