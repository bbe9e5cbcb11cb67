// The side column of a memory: details, use and feedback, and shares.

import { address } from '../address.js';
import { api } from '../api.js';
import { h, stored } from '../dom.js';
import { complain, say } from '../say.js';
import { cut, sourceText } from './memory.js';
import { when } from './when.js';

const EVERYONE = '*';

/** @param {object} memory */
export const detailsPart = (memory) => {
  const rows = [
    ['Category', browseLink('category', memory.category)],
    memory.tags.length && ['Tags', memory.tags.map((tag) => [browseLink('tags', tag), ' '])],
    ['Scope', browseLink('scope', memory.scope)],
    memory.source && ['Source', browseLink('source', memory.source.uri, sourceText(memory.source))],
    ['Created', when(memory.created_at)],
    memory.updated_at !== memory.created_at && ['Changed', when(memory.updated_at)],
    memory.valid_from && ['Valid from', when(memory.valid_from)],
    memory.valid_to && ['Valid until', when(memory.valid_to)],
    ['Importance', memory.importance.toFixed(2)],
    ['Confidence', memory.confidence.toFixed(2)],
    memory.expanded_keywords.length && ['Also found by', stored(memory.expanded_keywords.join(', '))],
    ['Owner', stored(memory.owner)],
    ['Id', h('code', {}, memory.id)],
  ].filter(Boolean);
  return h('section', { class: 'card stack', 'aria-labelledby': 'details' }, h('h2', { id: 'details' }, 'Details'),
    h('dl', { class: 'details' }, rows.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])),
    h('p', {}, h('a', { href: address('graph', [], { start: memory.id }) }, 'Show connections')));
};

const browseLink = (name, value, text = value) => h('a', { href: address('browse', [], { [name]: value }), title: value }, stored(text));

/** @param {{memory: object, may: {write: boolean}, again: () => Promise<void>}} view @param {object} usage */
export const usagePart = (view, usage) =>
  h('section', { class: 'card stack', 'aria-labelledby': 'usage' }, h('h2', { id: 'usage' }, 'Use'),
    h('p', {}, usage.shown ? [`Recalled ${times(usage.shown)}, last `, when(usage.last_shown), '.'] : 'Not recalled yet.'),
    h('p', {}, `Found useful ${times(usage.useful)}, not useful ${times(usage.not_useful)}.`),
    view.may.write && h('div', { class: 'row' },
      h('button', { type: 'button', class: 'small', on: { click: () => judge(view, 'useful') } }, 'Useful'),
      h('button', { type: 'button', class: 'small', on: { click: () => judge(view, 'not-useful') } }, 'Not useful')));

const times = (number) => (number === 1 ? 'once' : `${number} times`);

export const judge = (view, verdict) =>
  acted(view, () => api.put(`/v1/memories/${view.memory.id}/feedback`, { verdict }), () => say(`Recorded: ${verdict.replace('-', ' ')}. It does not change ranks; it is used for tuning.`));

/** @param {{memory: object, may: {share: boolean}, again: () => Promise<void>}} view @param {object[]} shares */
export const sharePart = (view, shares) => {
  const { memory } = view;
  const here = shares.filter((one) => one.owner === memory.owner && (one.id === memory.id || memory.tags.includes(one.tag)));
  if (!view.may.share && !here.length) return null;
  return h('section', { class: 'card stack', 'aria-labelledby': 'shares' }, h('h2', { id: 'shares' }, 'Shared with'),
    here.length > 0 ? h('ul', { class: 'links' }, here.map((share) => shareRow(view, share))) : h('p', { class: 'help' }, 'No one.'),
    view.may.share && shareForm(view));
};

const shareRow = (view, share) =>
  h('li', { class: 'row' }, h('span', { class: 'grow' }, stored(share.user === EVERYONE ? 'everyone' : share.user), ` (${share.permission})`, share.tag && [', by the tag ', stored(share.tag)]),
    view.may.share && h('button', { type: 'button', class: 'small quiet', 'aria-label': `Stop sharing ${share.tag ? `the tag ${share.tag} ` : ''}with ${share.user}`, on: { click: () => unshare(view, share) } }, 'Stop'));

const shareForm = (view) => {
  const user = h('input', { required: true, placeholder: 'a user, or * for everyone', 'aria-label': 'Share with', autocomplete: 'off' });
  const what = h('select', { 'aria-label': 'What' }, h('option', { value: '' }, 'this memory'), view.memory.tags.map((tag) => h('option', { value: tag }, `all with the tag ${cut(tag, 30)}`)));
  const permission = h('select', { 'aria-label': 'May' }, h('option', { value: 'read' }, 'read'), h('option', { value: 'write' }, 'edit'));
  const submit = (event) => {
    event.preventDefault();
    share(view, { user: user.value.trim(), ...(what.value ? { tag: what.value } : { id: view.memory.id }), permission: permission.value });
  };
  return h('form', { class: 'row share', on: { submit } }, view.memory.tags.length > 0 && what, user, permission, h('button', { type: 'submit', class: 'small' }, 'Share'));
};

const share = (view, asked) =>
  acted(view, () => api.post('/v1/shares', asked), () => say('Shared.', { undo: async () => { await api.delete('/v1/shares', { user: asked.user, id: asked.id, tag: asked.tag }); await view.again(); } }));

const unshare = (view, { user, id, tag, permission }) =>
  acted(view, () => api.delete('/v1/shares', id ? { user, id } : { user, tag }), () => say('No longer shared.', { undo: async () => { await api.post('/v1/shares', { user, permission, ...(id ? { id } : { tag }) }); await view.again(); } }));

const acted = async (view, act, told) => {
  try {
    await act();
    told();
    await view.again();
  } catch (error) {
    complain(error);
  }
};
