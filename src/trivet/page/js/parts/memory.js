// A memory in a list: memoryItem(memory, {words, passage, before, after, level}) -> <li data-item> with its title or
// first line as a link, the passage, and a line about it (category, tags, scope, time, state). about(memory) is only that
// line; masked(memory, reveal) is the sign and button for hidden text.

import { address } from '../address.js';
import { api } from '../api.js';
import { h, refill, stored } from '../dom.js';
import { complain, say } from '../say.js';
import { may } from '../session.js';
import { highlight } from './highlight.js';
import { when } from './when.js';

const LINE_CHARACTERS = 160;
const PASSAGE_CHARACTERS = 600;
// A period in a number, a name or a one-letter abbreviation does not end a sentence.
const SENTENCE = /^.{12,}?[^\s.]{2}[.!?](?=\s)/u;
const STATES = { superseded: 'superseded', archived: 'archived', deleted: 'forgotten' };

/**
 * @param {object} memory
 * @param {{words?: string[], passage?: string, before?: any, after?: any, level?: string}} [options]
 *   words to mark; passage instead of the content; nodes before the title and after the passage; the heading's tag
 */
export const memoryItem = (memory, { words = [], passage, before, after, level = 'h2' } = {}) => {
  const text = passage ?? memory.content;
  const name = titleOf(memory);
  const rest = memory.title ? text : restOf(text, name);
  return h('li', { class: 'memory', 'data-item': memory.id, tabindex: '-1' },
    h(level, { class: 'name', dir: 'auto' }, before, h('a', { href: address('memory', [memory.id]), 'data-open': true }, highlight(name, words))),
    rest && h('p', { class: 'passage stored', dir: 'auto' }, highlight(cut(rest, PASSAGE_CHARACTERS), words)),
    about(memory),
    memory.sensitive && masked(memory),
    after);
};

/** The title, or the first sentence. */
export const titleOf = (memory) => (memory.title ? cut(memory.title, LINE_CHARACTERS) : firstSentence(memory.content));

/** A link with the title if known, else with the id. */
export const memoryLink = (id, names = {}) =>
  h('a', { class: 'stored', href: address('memory', [id]) }, names[id] ?? `${id.slice(0, 13)}…`);

/** Category, tags, scope, time and state, without the defaults (default, active). */
export const about = (memory) =>
  h('p', { class: 'about' },
    memory.state !== 'active' && h('span', { class: `state ${memory.state}` }, STATES[memory.state] ?? memory.state),
    h('span', { class: 'category' }, stored(memory.category)),
    memory.scope !== 'default' && h('span', { class: 'scope' }, stored(cut(memory.scope, 60))),
    memory.tags.map((tag) => h('span', { class: 'tag' }, stored(cut(tag, 60)))),
    memory.source && h('span', { class: 'source' }, stored(sourceText(memory.source))),
    h('span', { class: 'time' }, when(memory.created_at)));

/** Marks hidden text and reveals it on request, which the server notes in its audit record. */
export const masked = (memory, shown = showInPlace) => {
  const act = async (event) => {
    const button = event.currentTarget;
    try {
      shown(await api.post(`/v1/memories/${encodeURIComponent(memory.id)}/reveal`), button);
      say('Shown. The audit record notes that you looked.');
    } catch (error) {
      complain(error);
    }
  };
  return h('p', { class: 'masked' }, h('span', { class: 'state sensitive' }, 'masked'),
    may('reveal')
      ? h('button', { type: 'button', on: { click: act } }, 'Reveal')
      : h('span', {}, 'Your key does not allow revealing it.'));
};

const showInPlace = (memory, button) =>
  refill(button.closest('.masked'), h('span', { class: 'stored revealed', dir: 'auto' }, memory.content));

export const sourceText = ({ uri, start_line: start, end_line: end }) =>
  `${shortened(uri)}${start ? `:${start}` : ''}${end && end !== start ? `–${end}` : ''}`;

/** Keeps the end of a path, which says more than its beginning. */
const shortened = (uri) => (uri.length > 60 ? `…${uri.slice(-58)}` : uri);

export const cut = (text, characters) =>
  text.length > characters ? `${text.slice(0, characters).replace(/[\uD800-\uDBFF]$/, '')}…` : text;

const firstLine = (text) => (text.trim().split('\n', 1)[0] ?? '').replace(/^#+\s+/, '') || '(empty)';

/** The first sentence, or as many whole words of it as a heading holds. */
const firstSentence = (text) => {
  const line = firstLine(text);
  const sentence = line.match(SENTENCE)?.[0] ?? line;
  return sentence.length > LINE_CHARACTERS ? `${cut(sentence, LINE_CHARACTERS).replace(/\s+\S*…$/, '')}…` : sentence;
};

/** The text without what the heading already shows. */
const restOf = (text, name) => {
  const rest = text.trim().replace(/^#+\s+/, '');
  const said = name.replace(/…$/, '');
  if (!rest.startsWith(said)) return rest;
  return `${name.endsWith('…') ? '… ' : ''}${rest.slice(said.length).trim()}`;
};
