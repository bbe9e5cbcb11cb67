// What moved between two rankings, and each leg's contribution before and after.

import { h } from '../dom.js';
import { legName } from './bars.js';

// Smaller differences do not decide anything and are not shown.
const SMALLEST = 0.005;

/** @param {number | null} before its rank, from 1 @param {number | null} after */
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
 * @returns {string[]} a text per leg whose contribution changed
 */
export const legChanges = (before, after) =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((leg) => {
    const [one, other] = [before[leg] ?? NOTHING, after[leg] ?? NOTHING];
    if (one.rank === other.rank && Math.abs(one.gave - other.gave) < SMALLEST) return [];
    return [`${legName(leg)} ${told(one)} → ${told(other)}`];
  });

const NOTHING = { rank: null, gave: 0 };
const told = ({ rank, gave }) => (rank === null ? 'not found' : `#${rank} (${gave.toFixed(2)})`);
