// The hit's rank in each leg, as small bars with a text alternative: bars(hit.why.legs) -> an element.

import { h } from '../dom.js';

export const LEGS = { lexical: 'words', dense: 'meaning', graph: 'graph' };

export const legName = (leg) => LEGS[leg] ?? leg;

/** @param {Record<string, {rank: number | null}>} legs */
export const bars = (legs) => {
  const told = Object.keys(LEGS).map((leg) => `${legName(leg)} ${placeOf(legs[leg])}`).join(', ');
  return h('span', { class: 'bars', role: 'img', 'aria-label': `Place by ${told}`, title: `Place by ${told}` },
    Object.keys(LEGS).map((leg) => h('span', { class: `bar ${leg}`, style: { '--part': percent(height(legs[leg])) } })));
};

const placeOf = (leg) => (leg && leg.rank !== null ? `#${leg.rank}` : 'none');

/** Ranks are comparable between legs, scores are not. Bars fall with the rank as in nDCG. */
const height = (leg) => (leg && leg.rank !== null ? 1 / Math.log2(leg.rank + 1) : 0);

export const percent = (share) => `${Math.round(share * 100)}%`;
