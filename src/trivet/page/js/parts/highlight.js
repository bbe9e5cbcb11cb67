// Text with marked words: highlight(text, ['port', 'deploy']) -> a list of strings and <mark> elements.
// A word also marks longer words that begin with it, as 'deploy' marks 'deployed'; case and accents are ignored.

import { h } from '../dom.js';

const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;
// Longer texts are marked only up to here.
const MOST_CHARACTERS = 20_000;
// Shorter words match only whole words: 'a' must not mark every word that begins with it.
const SHORTEST_BEGINNING = 4;

export const highlight = (text, words = []) => {
  const wanted = [...new Set(words.flatMap((word) => plain(word).match(WORD) ?? []))];
  if (!wanted.length) return [text];
  const parts = [];
  let end = 0;
  for (const { 0: word, index } of text.slice(0, MOST_CHARACTERS).matchAll(WORD)) {
    if (!matches(plain(word), wanted)) continue;
    parts.push(text.slice(end, index), h('mark', {}, word));
    end = index + word.length;
  }
  return [...parts, text.slice(end)];
};

const plain = (text) => text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();

const matches = (word, wanted) =>
  wanted.some((one) => word === one || (one.length >= SHORTEST_BEGINNING && word.startsWith(one)));
