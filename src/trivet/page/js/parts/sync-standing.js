// The sync state of a store that follows a server, and what needs a decision: conflicting edits and refused changes.

import { api } from '../api.js';
import { h, refill, stored } from '../dom.js';
import { complain, say } from '../say.js';
import { may } from '../session.js';
import { clashes } from './conflicts.js';
import { confirm } from './dialog.js';
import { cut, memoryLink } from './memory.js';
import { when } from './when.js';

const SHOWN_CHARACTERS = 300;
const ACTS = { create: 'New:', edit: 'Edit of', feedback: 'Feedback on', share: 'Share of', unshare: 'End of a share of', share_tag: 'Share of a tag', unshare_tag: 'End of a share of a tag', link: 'Link of', unlink: 'End of a link of', purge: 'Removal of', resolve: 'Decision on', heal: 'Repair of' };

/** @param {HTMLElement} part that it is drawn in @param {AbortSignal} signal @param {() => Promise<void>} again after a decision */
export const drawStanding = async (part, signal, again, reveal = false) => {
  const [standing, conflicts, refused] = await Promise.all([
    api.get('/v1/sync/status', {}, { signal }), clashes(null, signal), api.get('/v1/sync/refused', reveal ? { reveal } : {}, { signal }),
  ]);
  const shown = () => drawStanding(part, signal, again, true).then(() => say('Shown. The audit record notes that you looked.'), complain);
  refill(part, standing && standingPart(standing), conflicts.length > 0 && conflictList(conflicts), refused.length > 0 && refusedList(refused, again, shown));
};

const standingPart = (standing) => {
  const rows = [
    ['Follows', stored(`${standing.server} as ${standing.user}`)],
    ['Last contact', standing.contact ? when(standing.contact) : 'never'],
    ['Waiting to be sent', standing.outbox ? [standing.outbox.toLocaleString('en'), ', the oldest since ', when(standing.oldest)] : 'nothing'],
    standing.scopes.length && ['Scopes', stored(standing.scopes.join(', '))],
    standing.stays_local && ['Not sent', `${standing.stays_local.toLocaleString('en')}: ${standing.why_local}`],
  ].filter(Boolean);
  const notes = [
    standing.hidden && 'What others shared is hidden until the next contact.',
    standing.full_pull && 'A full sync is running, and not everything is here yet.',
  ].filter(Boolean);
  return [h('h2', {}, 'Sync'), h('dl', { class: 'details sync' }, rows.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])),
    notes.length > 0 && h('ul', { class: 'note warn' }, notes.map((text) => h('li', {}, text)))];
};

const conflictList = (found) => [
  h('h2', {}, 'Conflicting edits'),
  h('ul', { class: 'list' }, found.map((one) => h('li', { class: 'finding', 'data-item': one.rev, tabindex: '-1' },
    h('h3', { class: 'name' }, h('span', { class: 'state possible' }, 'decide'), opened(memoryLink(one.id, { [one.id]: cut(one.name, 120) }))),
    h('p', { class: 'help' }, 'An edit by ', stored(one.author), ', ', when(one.at), ', conflicts with it.')))),
];

const opened = (link) => {
  link.setAttribute('data-open', '');
  return link;
};

const refusedList = (found, again, shown) => [
  h('h2', {}, 'Refused by the server'),
  h('p', { class: 'help' }, 'Each change is kept here until you discard it.'),
  found.some((one) => one.masked) && h('p', { class: 'masked' }, h('span', { class: 'state sensitive' }, 'masked'),
    may('reveal') && h('button', { type: 'button', on: { click: shown } }, 'Reveal')),
  h('ul', { class: 'list' }, found.map((one) => h('li', { class: 'finding refused', 'data-item': one.op, tabindex: '-1' },
    h('h3', { class: 'name' }, h('span', { class: 'state possible' }, 'refused'), ACTS[one.kind] ?? one.kind, one.id && (one.name ? memoryLink(one.id, { [one.id]: cut(one.name, 120) }) : h('code', {}, one.id))),
    h('p', { class: 'stored' }, one.reason, ' ', h('span', { class: 'help' }, 'Recorded ', when(one.at), '.')),
    h('dl', { class: 'details' }, Object.entries(one.said).filter(([, value]) => isSaid(value)).map(([name, value]) => [h('dt', { class: 'stored' }, name), h('dd', { class: 'stored', dir: 'auto' }, cut(text(value), SHOWN_CHARACTERS))])),
    may('write') && h('div', {}, h('button', { type: 'button', class: 'small danger', 'data-open': true, on: { click: () => letGo(one, again) } }, 'Discard'))))),
];

const isSaid = (value) => value !== null && value !== '' && value !== false && !(Array.isArray(value) && !value.length);
const text = (value) => (typeof value === 'string' ? value : Array.isArray(value) ? value.join(', ') : JSON.stringify(value));

const letGo = async ({ op }, again) => {
  if (!(await confirm('Discard it?', 'The change is removed from this store, and the server never gets it.', 'Discard', { danger: true }))) return;
  try {
    await api.delete(`/v1/sync/refused/${encodeURIComponent(op)}`);
    say('Discarded.');
    await again();
  } catch (error) {
    complain(error);
  }
};
