// A memory's links as sentences, its chain of superseded memories, and adding and removing links.

import { api } from '../api.js';
import { h } from '../dom.js';
import { complain, say } from '../say.js';
import { dialog } from './dialog.js';
import { memoryLink, titleOf } from './memory.js';
import { pick } from './pick.js';
import { when } from './when.js';

// The wording of a link at its source and at its target.
const FROM_HERE = { supersedes: 'Supersedes', 'resolved-by': 'Is resolved by', 'part-of': 'Is part of', 'see-also': 'See also' };
const TO_HERE = { supersedes: 'Is superseded by', 'resolved-by': 'Resolves', 'part-of': 'Contains', 'see-also': 'Is referred to by' };
const MOST_IN_CHAIN = 24;
const MOST_NAMED = 40;

/** @param {{memory: object, may: {own: boolean}, place: object, again: () => Promise<void>}} view @param {object[]} links */
export const linksPart = async (view, links) => {
  const { id } = view.memory;
  const chain = await chainOf(view, links);
  const others = links.map((link) => (link.source === id ? link.target : link.source));
  const names = await titles(others, chain.names, view.place.signal);
  return h('section', { class: 'card stack', 'aria-labelledby': 'links' },
    h('div', { class: 'row apart' }, h('h2', { id: 'links' }, 'Links'),
      view.may.own && h('button', { type: 'button', class: 'small', on: { click: () => addLink(view) } }, 'Add a link')),
    chain.memories.length > 1 && chainList(chain.memories, id),
    links.length > 0 ? h('ul', { class: 'links' }, links.map((link) => row(view, link, names))) : h('p', { class: 'help' }, 'Not linked to any memory.'));
};

const row = (view, link, names) => {
  const here = link.source === view.memory.id;
  const other = here ? link.target : link.source;
  const text = (here ? FROM_HERE : TO_HERE)[link.kind] ?? link.kind;
  return h('li', { class: 'row' }, h('span', { class: 'kind' }, text), h('span', { class: 'grow' }, memoryLink(other, names)),
    view.may.own && h('button', { type: 'button', class: 'small quiet', 'aria-label': `Remove the link: ${text} ${names[other] ?? other}`, on: { click: () => removeLink(view, link) } }, 'Remove'));
};

const pathOf = ({ source, kind, target }) => `/v1/memories/${source}/links/${kind}/${target}`;

const removeLink = (view, link) =>
  acted(view, 'Link removed.', () => api.delete(pathOf(link)), () => api.put(pathOf(link)));

export const addLink = async (view) => {
  const sentence = await chooseKind();
  if (!sentence) return;
  const other = await pick(`${sentence.text} …`, { except: view.memory.id, action: 'Link to this one' });
  if (!other) return;
  const [source, target] = sentence.here ? [view.memory.id, other.id] : [other.id, view.memory.id];
  const link = { source, kind: sentence.kind, target };
  await acted(view, 'Linked.', () => api.put(pathOf(link)), () => api.delete(pathOf(link)));
};

const acted = async (view, text, act, back) => {
  try {
    await act();
    say(text, { undo: async () => { await back(); await view.again(); } });
    await view.again();
  } catch (error) {
    complain(error);
  }
};

/** Asks for the kind of link. */
const chooseKind = () =>
  new Promise((resolve) => {
    let chosen = null;
    const button = (kind, text, here) => h('li', {}, h('button', { type: 'button', class: 'quiet offer', on: { click: () => { chosen = { kind, text, here }; box.close(); } } }, `${text} …`));
    const box = dialog('This memory …', h('ul', { class: 'offers' },
      Object.entries(FROM_HERE).map(([kind, text]) => button(kind, text, true)),
      button('supersedes', TO_HERE.supersedes, false), button('resolved-by', TO_HERE['resolved-by'], false)));
    box.addEventListener('close', () => resolve(chosen));
    box.querySelector('.offer').focus();
  });

/** The memories that supersede or are superseded, newest first. */
const chainOf = async (view, links) => {
  const seen = new Map([[view.memory.id, view.memory]]);
  const edges = [];
  let next = superseding(links);
  edges.push(...next);
  for (let ends = endsOf(next, seen); ends.length && seen.size < MOST_IN_CHAIN; ends = endsOf(next, seen)) {
    const read = await Promise.all(ends.slice(0, MOST_IN_CHAIN - seen.size).map((id) => withLinks(id, view.place.signal)));
    for (const { memory } of read) seen.set(memory.id, memory);
    next = read.flatMap((one) => superseding(one.links));
    edges.push(...next);
  }
  const names = Object.fromEntries([...seen.values()].map((memory) => [memory.id, titleOf(memory)]));
  return { memories: inOrder([...seen.values()], edges), names };
};

const superseding = (links) => links.filter((link) => link.kind === 'supersedes');

const endsOf = (links, seen) => [...new Set(links.flatMap((link) => [link.source, link.target]))].filter((id) => !seen.has(id));

const withLinks = async (id, signal) => {
  const [memory, links] = await Promise.all([api.get(`/v1/memories/${id}`, {}, { signal }), api.get(`/v1/memories/${id}/links`, {}, { signal })]);
  return { memory, links };
};

/** Each memory follows all that supersede it; among equals, the later one is first. */
const inOrder = (memories, edges) => {
  const depth = new Map();
  const deep = (id, below = new Set()) => {
    if (below.has(id)) return 0;
    if (!depth.has(id)) depth.set(id, Math.max(0, ...edges.filter((edge) => edge.target === id).map((edge) => 1 + deep(edge.source, new Set([...below, id])))));
    return depth.get(id);
  };
  return memories.toSorted((one, other) => deep(one.id) - deep(other.id) || (one.created_at < other.created_at ? 1 : -1));
};

const chainList = (memories, id) =>
  h('ol', { class: 'chain', 'aria-label': 'Superseded memories, newest first' }, memories.map((memory) =>
    h('li', { 'aria-current': memory.id === id ? 'true' : null, class: memory.state },
      memory.id === id ? h('strong', { class: 'stored', dir: 'auto' }, titleOf(memory)) : memoryLink(memory.id, { [memory.id]: titleOf(memory) }),
      h('span', { class: 'help' }, when(memory.created_at)))));

/** Titles of linked memories. Unreadable ones are shown by id. */
const titles = async (ids, known, signal) => {
  const missing = [...new Set(ids)].filter((id) => !(id in known)).slice(0, MOST_NAMED);
  const read = await Promise.allSettled(missing.map((id) => api.get(`/v1/memories/${id}`, {}, { signal })));
  return { ...known, ...Object.fromEntries(read.filter((one) => one.value).map((one) => [one.value.id, titleOf(one.value)])) };
};
