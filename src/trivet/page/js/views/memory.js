// One memory: its text, history, links, use and shares, with editing, forgetting and restoring.

import { api, isAbort } from '../api.js';
import { h, refill } from '../dom.js';
import { clashes, conflictPart } from '../parts/conflicts.js';
import { confirm } from '../parts/dialog.js';
import { about, masked, titleOf } from '../parts/memory.js';
import { editForm } from '../parts/memory-edit.js';
import { historyPart } from '../parts/memory-history.js';
import { addLink, linksPart } from '../parts/memory-links.js';
import { detailsPart, judge, sharePart, usagePart } from '../parts/memory-side.js';
import { complain, say } from '../say.js';
import { may, me } from '../session.js';
import { heading } from '../view.js';

// Placeholders of secrets and private parts.
const HIDDEN_PART = /\[(?:secret:[\w-]+:\d+|private(?::\d+)?)\]/;
const WHOLE_IN_HEADING = 140;
let view = null;

/** @param {import('../view.js').Place} place */
export async function show(place) {
  const mine = { place, id: place.path[0] ?? '', again: () => load(mine), memory: null, revealed: false };
  view = mine;
  refill(place.main, h('div', { class: 'stack' }, h('div', { class: 'unseen' }, heading('Memory'))));
  await load(mine);
}

export const keys = [
  { key: 'e', does: 'Edit the memory', act: () => view.may?.edit && edit(view) },
  { key: 'd', does: 'Forget it (can be undone)', act: () => view.may?.own && isLiving(view) && forget(view) },
  { key: 'l', does: 'Link it to another memory', act: () => view.may?.own && addLink(view) },
  { key: 'u', does: 'Mark it as useful', act: () => view.may?.write && judge(view, 'useful') },
  { key: 'n', does: 'Mark it as not useful', act: () => view.may?.write && judge(view, 'not-useful') },
  { key: 'h', does: 'Go to its history', act: () => document.getElementById('history')?.focus() },
];

const isLiving = ({ memory }) => memory.state !== 'deleted';

const load = async (mine) => {
  const { place } = mine;
  const { signal } = place;
  if (signal.aborted) return;
  const path = `/v1/memories/${encodeURIComponent(mine.id)}`;
  try {
    const [who, beside, memory, links, history, usage, shares, categories] = await Promise.all([
      me(api), clashes(mine.id, signal), ...[path, `${path}/links`, `${path}/history`, `${path}/usage`, '/v1/shares', '/v1/categories'].map((one) => api.get(one, {}, { signal })),
    ]);
    Object.assign(mine, { id: memory.id, memory, revealed: false, may: rights(memory, who, shares), categories: categories.map((one) => one.name) });
    place.title(titleOf(memory));
    const linked = await linksPart(mine, links);
    draw(mine, { beside, linked, history, usage, shares });
  } catch (error) {
    if (!isAbort(error)) notThere(place, error);
  }
};

/** Mirrors the server's rules, which the server checks again on every action. */
const rights = (memory, who, shares) => {
  const own = memory.owner === who.user;
  const lent = shares.some((one) => one.owner === memory.owner && one.permission === 'write' && (one.id === memory.id || memory.tags.includes(one.tag)));
  return { write: may('write'), own: own && may('write'), edit: may('write') && memory.state !== 'deleted' && (own || lent), share: own && may('share') };
};

const notThere = (place, error) =>
  refill(place.main, h('div', { class: 'card empty' }, heading('No such memory'), h('p', { class: 'stored' }, error.message)));

const draw = (mine, { beside, linked, history, usage, shares }) => {
  const { memory, place } = mine;
  const isHeading = !memory.title && memory.content.trim().length <= WHOLE_IN_HEADING && !memory.content.trim().includes('\n');
  mine.text = h('div', { class: 'stack' });
  mine.heading = heading('', h('span', { class: 'stored', dir: 'auto' }, isHeading ? memory.content.trim() : titleOf(memory)));
  const hadFocus = place.main.contains(document.activeElement);
  refill(place.main, h('article', { class: 'stack' },
    h('header', { class: 'stack tight' }, mine.heading, about(memory), actions(mine)),
    h('div', { class: 'columns two' },
      h('div', { class: 'stack' }, mine.text, conflictPart(mine, beside), linked, historyPart(mine, history)),
      h('div', { class: 'stack' }, detailsPart(memory), usagePart(mine, usage), sharePart(mine, shares)))));
  drawText(mine, !isHeading);
  if (hadFocus) mine.heading.focus({ preventScroll: true });
};

const drawText = (mine, whole = true) => {
  const { memory, revealed } = mine;
  const hides = !revealed && (memory.sensitive || HIDDEN_PART.test(`${memory.title}${memory.content}`));
  const shown = (found) => {
    Object.assign(mine, { memory: { ...memory, title: found.title, content: found.content }, revealed: true });
    drawText(mine);
  };
  refill(mine.text, whole && h('div', { class: 'card' }, h('div', { class: 'text stored', dir: 'auto' }, memory.content)), hides && masked(memory, shown));
};

const actions = (mine) => {
  const living = isLiving(mine);
  const button = (text, act, kind = '') => h('button', { type: 'button', class: kind, on: { click: () => act(mine) } }, text);
  const offered = [
    mine.may.edit && button('Edit', edit),
    mine.may.own && living && button('Forget', forget, 'danger'),
    mine.may.own && !living && button('Restore', bringBack, 'main'),
    mine.may.own && !living && button('Delete permanently', purge, 'danger'),
  ].filter(Boolean);
  return offered.length > 0 && h('div', { class: 'row' }, offered);
};

const edit = (mine) => {
  if (mine.text.querySelector('form')) return;
  const { memory } = mine;
  const how = { own: mine.may.own, hidden: memory.sensitive && !mine.revealed, categories: mine.categories };
  const left = () => mine.again();
  const saved = async (made) => {
    const undo = mine.may.own && (async () => { await restored(mine, memory.revision); });
    say(`Saved as revision ${made.revision}.`, { undo: undo || undefined });
    await mine.again();
  };
  const form = editForm(memory, how, { saved, left });
  refill(mine.text, form.element);
  form.focus();
};

const restored = async (mine, revision) => {
  await api.post(`/v1/memories/${mine.id}/restore`, revision ? { revision } : {});
  await mine.again();
};

const forget = (mine) =>
  acted(mine, () => api.delete(`/v1/memories/${mine.id}`), () => say('Forgotten.', { undo: () => restored(mine) }));

const bringBack = (mine) => acted(mine, () => restored(mine), () => say('Restored.'));

const purge = async (mine) => {
  const sure = await confirm('Delete it permanently?', 'The memory, its history and its links are erased. This cannot be undone.', 'Delete permanently', { danger: true });
  if (!sure) return;
  try {
    await api.post(`/v1/memories/${mine.id}/purge`);
    say('Deleted permanently.');
    mine.place.go('#/browse');
  } catch (error) {
    complain(error);
  }
};

const acted = async (mine, act, told) => {
  try {
    await act();
    told();
    await mine.again();
  } catch (error) {
    complain(error);
  }
};
