// The inbox: memories that capture proposes, decided one by one or together, by keys or buttons. Every decision can be
// undone.

import { address } from '../address.js';
import { api, isAbort } from '../api.js';
import { h, refill } from '../dom.js';
import { currentItem } from '../keys.js';
import { pick } from '../parts/pick.js';
import { proposalItem } from '../parts/proposal.js';
import { proposalForm } from '../parts/proposal-edit.js';
import { complain, say } from '../say.js';
import { may, me } from '../session.js';
import { heading } from '../view.js';

const PAGE = 50;
// The server's limit per request.
const MOST_AT_ONCE = 100;
const STATES = { waiting: 'Waiting', accepted: 'Accepted', rejected: 'Rejected' };
let inbox = null;

/** @param {import('../view.js').Place} place */
export async function show(place) {
  const state = place.query.get('state') in STATES ? place.query.get('state') : 'waiting';
  const mine = { place, state, proposals: [], total: 0, memories: {}, selected: new Set(), categories: [], undo: null };
  inbox = mine;
  mine.count = h('p', { class: 'help count', role: 'status' });
  mine.bar = h('div', { class: 'row note selection', hidden: true });
  mine.list = h('div', { class: 'stack' });
  refill(place.main, h('div', { class: 'stack' },
    h('div', { class: 'row apart' }, heading('Inbox'), mine.count),
    h('nav', { class: 'row tabs', 'aria-label': 'Which proposals' }, Object.entries(STATES).map(([name, text]) =>
      h('a', { class: 'button', href: address('inbox', [], name === 'waiting' ? {} : { state: name }), 'aria-current': name === state ? 'page' : null }, text))),
    mine.bar, mine.list));
  await me(api);
  mine.categories = (await api.get('/v1/categories', {}, { signal: place.signal })).map((one) => one.name);
  await load(mine);
}

export const keys = [
  { key: 'a', does: 'Accept it, or all selected', act: () => act('accept') },
  { key: 'r', does: 'Reject it, or all selected', act: () => act('reject') },
  { key: 'e', does: 'Edit it', act: () => act('edit') },
  { key: 'u', does: 'Choose the memory that it updates', act: () => act('link') },
  { key: 'x', does: 'Select it', act: () => act('select') },
  { key: 'z', does: 'Undo the last decision', act: () => inbox.undo?.() },
];

/** Acts on the focused proposal, else on the first. */
const act = (name) => {
  const id = (currentItem() ?? document.querySelector('main [data-item]'))?.dataset.item;
  if (id && may('write') && inbox.state === 'waiting') actsOf(inbox)[name](id);
};

const actsOf = (mine) => ({
  accept: (id) => decide(mine, 'accept', picked(mine, id)),
  reject: (id) => decide(mine, 'reject', picked(mine, id)),
  reopen: (id) => decide(mine, 'reopen', [id]),
  add: (id) => decideAs(mine, id, { action: 'add' }),
  update: (id) => decideAs(mine, id, { action: 'update' }),
  supersede: (id) => decideAs(mine, id, { action: 'supersede' }),
  link: (id) => linkWith(mine, id),
  edit: (id) => edit(mine, id),
  select: (id) => select(mine, id),
});

/** The selection, or only this proposal if it is not selected. */
const picked = ({ selected }, id) => (selected.has(id) ? [...selected] : [id]);

const load = async (mine) => {
  const page = await api.get('/v1/inbox', { state: mine.state, limit: PAGE, offset: mine.proposals.length }, { signal: mine.place.signal });
  mine.proposals.push(...page.proposals);
  mine.total = page.total;
  await readConcerned(mine, page.proposals);
  draw(mine);
};

/** Reads the memories that proposals may update; unreadable ones are shown by id. */
const readConcerned = async (mine, proposals) => {
  const ids = [...new Set(proposals.map((one) => one.memory).filter((id) => id && !(id in mine.memories)))];
  const read = await Promise.allSettled(ids.map((id) => api.get(`/v1/memories/${id}`, {}, { signal: mine.place.signal })));
  for (const one of read) if (one.value) mine.memories[one.value.id] = one.value;
};

const draw = (mine) => {
  const { proposals, total, state } = mine;
  refill(mine.count, `${total.toLocaleString('en')} ${state}`);
  drawBar(mine);
  refill(mine.list,
    proposals.length > 0 ? h('ul', { class: 'list' }, proposals.map((one) => item(mine, one))) : h('div', { class: 'card empty' }, h('h2', {}, state === 'waiting' ? 'Nothing is waiting' : `Nothing was ${state}`), h('p', {}, 'What an agent learns from conversations appears here for your decision.')),
    proposals.length < total && h('button', { type: 'button', on: { click: () => load(mine).catch(complain) } }, `Show more of ${total.toLocaleString('en')}`));
};

const item = (mine, proposal) =>
  proposalItem(proposal, mine.memories[proposal.memory] ?? null, { write: may('write'), selected: mine.selected.has(proposal.id), acts: actsOf(mine) });

const redraw = (mine, id) => {
  const proposal = mine.proposals.find((one) => one.id === id);
  const made = item(mine, proposal);
  elementOf(mine, id)?.replaceWith(made);
  return made;
};

const elementOf = (mine, id) => mine.list.querySelector(`[data-item="${CSS.escape(id)}"]`);

const drawBar = (mine) => {
  const { size } = mine.selected;
  mine.bar.hidden = !size;
  const button = (text, name) => h('button', { type: 'button', class: 'small', on: { click: () => decide(mine, name, [...mine.selected]) } }, text);
  refill(mine.bar, h('span', {}, `${size} selected`), button('Accept', 'accept'), button('Reject', 'reject'),
    h('button', { type: 'button', class: 'small quiet', on: { click: () => { mine.selected.clear(); draw(mine); } } }, 'Select none'));
};

const select = (mine, id) => {
  if (!mine.selected.delete(id)) mine.selected.add(id);
  const box = elementOf(mine, id)?.querySelector('input[type=checkbox]');
  if (box) box.checked = mine.selected.has(id);
  drawBar(mine);
};

const SAID = { accept: 'Accepted', reject: 'Rejected', reopen: 'Back in the inbox' };

/** Decides on all proposals, of which the server does all or none. */
const decide = async (mine, name, ids) => {
  const some = ids.slice(0, MOST_AT_ONCE);
  const at = mine.proposals.findIndex((one) => one.id === some[0]);
  const removed = mine.proposals.filter((one) => some.includes(one.id));
  try {
    await api.post(`/v1/${name}`, { ids: some });
  } catch (error) {
    complain(error);
    return;
  }
  mine.proposals = mine.proposals.filter((one) => !some.includes(one.id));
  for (const id of some) mine.selected.delete(id);
  mine.total -= removed.length;
  draw(mine);
  focusAt(mine, at);
  const undo = undoOf(mine, name, some, removed, at);
  mine.undo = undo && (() => undo().then(() => say('Undone.'), complain));
  say(some.length === 1 ? `${SAID[name]}.` : `${SAID[name]}: ${some.length}.`, { undo });
  if (!mine.proposals.length && mine.total) await load(mine).catch(complain);
};

/** Puts decided proposals back in their old place. A reopened proposal is decided again in the inbox. */
const undoOf = (mine, name, ids, removed, at) => {
  if (name === 'reopen' || mine.state !== 'waiting') return undefined;
  return async () => {
    mine.undo = null;
    await api.post('/v1/reopen', { ids });
    if (mine.place.signal.aborted) return;
    mine.proposals.splice(at, 0, ...removed);
    mine.total += removed.length;
    draw(mine);
    focusAt(mine, at);
  };
};

const focusAt = (mine, at) => {
  const items = mine.list.querySelectorAll('[data-item]');
  const next = items[Math.min(at, items.length - 1)] ?? mine.place.main.querySelector('h1');
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
};

const change = async (mine, id, changes) => {
  const made = await api.patch(`/v1/inbox/${id}`, changes);
  mine.proposals = mine.proposals.map((one) => (one.id === id ? made : one));
  await readConcerned(mine, [made]);
};

const decideAs = async (mine, id, changes) => {
  try {
    await change(mine, id, changes);
  } catch (error) {
    complain(error);
    return;
  }
  await decide(mine, 'accept', [id]);
};

/** Lets the user choose the memory that the proposal updates. */
const linkWith = async (mine, id) => {
  const proposal = mine.proposals.find((one) => one.id === id);
  const old = await pick('Which memory does it update?', { words: proposal.content, help: 'Accepts it and supersedes the memory that you choose.', action: 'Accept and supersede this one' });
  if (old) await decideAs(mine, id, { action: 'supersede', memory: old.id });
  else elementOf(mine, id)?.focus();
};

const edit = (mine, id) => {
  const proposal = mine.proposals.find((one) => one.id === id);
  const left = () => redraw(mine, id).focus();
  const save = async (changes, accept) => {
    try {
      if (Object.keys(changes).length) await change(mine, id, changes);
      if (accept) await decide(mine, 'accept', [id]);
      else left();
    } catch (error) {
      if (!isAbort(error)) complain(error);
    }
  };
  const form = proposalForm(proposal, mine.categories, { save, left });
  refill(elementOf(mine, id), form.element);
  form.focus();
};
