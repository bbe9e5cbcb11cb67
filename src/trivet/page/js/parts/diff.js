// The server's unified diff as lines, with the differing words marked.

import { h } from '../dom.js';

/** @param {string} text of a unified diff */
export const diffLines = (text) => {
  const lines = text.split('\n').slice(3); // skips the two file lines and the first hunk header
  if (!text) return h('p', { class: 'help' }, 'The two are identical.');
  return h('div', { class: 'diff stored', dir: 'auto' }, runs(lines).map(drawRun));
};

/** Groups lines of one kind, so that removed lines pair with added ones. */
const runs = (lines) => {
  const found = [];
  for (const line of lines) {
    const kind = line[0] ?? ' ';
    const last = found[found.length - 1];
    if (last?.kind === kind) last.lines.push(line.slice(1));
    else found.push({ kind, lines: [line.slice(1)], before: last });
  }
  for (const run of found) run.instead = run.kind === '+' && run.before?.kind === '-' ? run.before : null;
  for (const run of found) if (run.instead) run.instead.instead = run;
  return found;
};

const drawRun = ({ kind, lines, instead }) => {
  if (kind === '@') return h('hr', {});
  const tag = { '+': 'ins', '-': 'del' }[kind] ?? 'span';
  return lines.map((line, number) => h(tag, { class: 'line' }, marked(line, instead?.lines[number])));
};

/** Marks the middle where two lines begin or end alike. */
const marked = (line, other) => {
  if (other === undefined) return line || ' ';
  let start = 0;
  while (start < Math.min(line.length, other.length) && line[start] === other[start]) start += 1;
  let end = 0;
  while (end < Math.min(line.length, other.length) - start && line.at(-1 - end) === other.at(-1 - end)) end += 1;
  // At word boundaries, and never within a surrogate pair.
  while (start > 0 && /[\p{L}\p{N}\uD800-\uDBFF]/u.test(line[start - 1])) start -= 1;
  while (end > 0 && /[\p{L}\p{N}\uDC00-\uDFFF]/u.test(line[line.length - end])) end -= 1;
  if (!start && !end) return line || ' ';
  return [line.slice(0, start), h('mark', {}, line.slice(start, line.length - end)), line.slice(line.length - end)];
};
