// What moved between two rankings of the same things, and why: what each leg gave before and after.

import { h } from '../dom.js';
import { legName } from './bars.js';

// A smaller difference is not shown: it decided nothing.
const SMALLEST = 0.005;

/** @param {number | null} before its place there, from 1 on @param {number | null} after */
export const move = (before, after) => {
  if (before === null) return { kind: 'new', text: 'new' };
  if (after === null) return { kind: 'gone', text: 'gone' };
  if (before === after) return { kind: 'same', text: 'same place' };
  return after < before ? { kind: 'up', text: `up ${before - after}` } : { kind: 'down', text: `down ${after - before}` };
};

export const moveMark = (before, after) => {
  const { kind, text } = move(before, after);
  return h('span', { class: `moved ${kind}` }, text);
};

/**
 * @param {Record<string, {rank: number | null, gave: number}>} before @param {Record<string, {rank: number | null, gave: number}>} after
 * @returns {string[]} a sentence for each leg that gave another thing
 */
export const legChanges = (before, after) =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((leg) => {
    const [one, other] = [before[leg] ?? NOTHING, after[leg] ?? NOTHING];
    if (one.rank === other.rank && Math.abs(one.gave - other.gave) < SMALLEST) return [];
    return [`${legName(leg)} ${told(one)} → ${told(other)}`];
  });

const NOTHING = { rank: null, gave: 0 };
const told = ({ rank, gave }) => (rank === null ? 'not found' : `#${rank} (${gave.toFixed(2)})`);
