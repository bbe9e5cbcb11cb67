// A proposal in the inbox: its text, reason, the memory that it may update, and its buttons.

import { h, stored, unseen } from '../dom.js';
import { cut, memoryLink, titleOf } from './memory.js';
import { when } from './when.js';

const KINDS = { asked: 'you asked for it', decision: 'a decision', preference: 'a preference', correction: 'a correction', workaround: 'a workaround', told: 'mentioned in passing' };
const LONG = 600;

/**
 * @param {object} proposal @param {object | null} concerned the memory that it may update, if it can be read
 * @param {{write: boolean, selected: boolean, acts: Record<string, (id: string) => void>}} how
 */
export const proposalItem = (proposal, concerned, { write, selected, acts }) => {
  const item = h('li', { class: 'memory proposal', 'data-item': proposal.id, tabindex: '-1' },
    write && proposal.state === 'waiting' && selector(proposal, selected, acts),
    h('div', { class: 'stack tight' },
      h('p', { class: 'said stored', dir: 'auto' }, proposal.content),
      proposal.reason && h('p', { class: 'help stored' }, proposal.reason),
      concernedPart(proposal, concerned),
      aboutProposal(proposal),
      write && h('div', { class: 'row decide' }, buttons(proposal, acts))));
  return item;
};

const selector = (proposal, selected, acts) =>
  h('input', { type: 'checkbox', checked: selected, 'aria-label': `Select: ${cut(proposal.content, 80)}`, on: { change: () => acts.select(proposal.id) } });

/** What accepting does to an existing memory. */
const concernedPart = (proposal, concerned) => {
  if (!proposal.memory) return null;
  const words = { supersede: 'This may update:', update: 'This rewrites:', add: 'Related:', nothing: 'Says the same as:' }[proposal.action];
  return h('div', { class: 'concerned note' }, h('span', { class: 'kind' }, words),
    concerned
      ? h('span', { class: 'stored', dir: 'auto' }, memoryLink(concerned.id, { [concerned.id]: cut(concerned.content || titleOf(concerned), LONG) }))
      : memoryLink(proposal.memory),
    concerned?.state === 'deleted' && h('span', { class: 'state deleted' }, 'forgotten'));
};

const aboutProposal = (proposal) =>
  h('p', { class: 'about' },
    proposal.state !== 'waiting' && h('span', { class: `state ${proposal.state === 'accepted' ? 'strong' : 'deleted'}` }, proposal.state),
    h('span', {}, KINDS[proposal.kind] ?? proposal.kind), h('span', {}, stored(proposal.category)),
    proposal.scope !== 'default' && h('span', {}, stored(cut(proposal.scope, 60))),
    proposal.tags.map((tag) => h('span', { class: 'tag' }, stored(cut(tag, 60)))),
    proposal.source && h('span', { title: proposal.source }, stored(proposal.source.length > 40 ? `…${proposal.source.slice(-39)}` : proposal.source)),
    h('span', {}, when(proposal.created_at)),
    proposal.decided_at && h('span', {}, 'decided ', when(proposal.decided_at)),
    proposal.state === 'accepted' && proposal.stored && h('span', {}, memoryLink(proposal.stored, { [proposal.stored]: 'The memory' })));

const buttons = (proposal, acts) => {
  const name = unseen(`: ${cut(proposal.content, 60)}`);
  const button = (text, act, kind = '') => h('button', { type: 'button', class: `small ${kind}`, 'data-act': act, on: { click: () => acts[act](proposal.id) } }, text, name.cloneNode(true));
  if (proposal.state === 'accepted') return [button('Take back', 'reopen')];
  if (proposal.state === 'rejected') return [button('Return to the inbox', 'reopen'), button('Accept after all', 'accept')];
  if (proposal.action === 'supersede') return [button('Accept and supersede it', 'accept', 'main'), button('Rewrite it instead', 'update'), button('Keep both', 'add'), ...usual(button)];
  if (proposal.action === 'update') return [button('Accept and rewrite it', 'accept', 'main'), button('Supersede it instead', 'supersede'), button('Keep both', 'add'), ...usual(button)];
  if (proposal.action === 'nothing') return [button('Accept anyway', 'add', 'main'), ...usual(button)];
  return [button('Accept', 'accept', 'main'), button('Updates another …', 'link'), ...usual(button)];
};

const usual = (button) => [button('Edit', 'edit'), button('Reject', 'reject')];
