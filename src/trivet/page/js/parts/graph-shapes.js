// Shapes, positions and labels in the picture of a graph.

import { s } from '../dom.js';
import { verbOf } from './graph-words.js';

export const LABEL_CHARACTERS = 26;
// Approximate size of a letter; measuring each label would force a new layout.
const LETTER = { width: 6.6, height: 15 };
const EDGE = 36; // room between the outermost nodes and the frame
const LARGEST_SCALE = 1.6;

/** A square for a memory; a circle for a concept, larger where more memories mention it. */
export const markOf = (node) => {
  const size = node.distance === 0 ? 11 : node.kind === 'memory' ? 7 : 5 + Math.min(5, Math.sqrt(node.memories ?? 1));
  const mark = node.kind === 'memory'
    ? s('rect', { x: -size, y: -size, width: 2 * size, height: 2 * size, rx: 2.5 })
    : s('circle', { r: size });
  return { size, mark };
};

/** The nodes whose label covers no earlier label. @param {{node: object, size: number, letters: number}[]} order */
export const withRoom = (order, at) => {
  const [taken, shown] = [[], new Set()];
  for (const one of order) {
    const { x, y } = at(one.node);
    const box = [x + one.size, y - LETTER.height / 2, x + one.size + 5 + one.letters * LETTER.width, y + LETTER.height / 2];
    if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
    taken.push(box);
    shown.add(one);
  }
  return shown;
};

/** Smaller values get their labels first. */
export const importance = (node, selected, near) => (node.id === selected ? -2 : node.distance === 0 ? -1 : (near.has(node.id) ? 0 : 10) + node.distance);

export const edgeLine = (edge) =>
  s('line', { class: `${edge.kind} ${edge.kind === 'link' ? edge.relation : ''}`, 'marker-end': edge.kind === 'mention' ? null : 'url(#arrow)' }, s('title', {}, verbOf(edge, true)));

export const arrowHead = () =>
  s('defs', {}, s('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: '7', refY: '4', markerWidth: '8', markerHeight: '8', markerUnits: 'userSpaceOnUse', orient: 'auto' },
    s('path', { d: 'M0 0 8 4 0 8z' })));

/** The bounds of the bodies: left, right, top, bottom. */
export const boundsOf = (bodies) => {
  const [xs, ys] = [bodies.map((body) => body.x), bodies.map((body) => body.y)];
  return [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
};

/** The center of zooming, with more room on the right for labels. */
export const middleOf = (frame) => {
  const { width, height } = frame.getBoundingClientRect();
  return { x: (width - 50) / 2, y: height / 2 };
};

/** Maps positions of bodies to points in the frame. */
export const scaled = ([left, right, top, bottom], width, height, zoom, shift) => {
  const room = { x: Math.max(40, width - 2 * EDGE - 60), y: Math.max(40, height - 2 * EDGE) }; // labels are on the right
  const scale = Math.min(LARGEST_SCALE, room.x / Math.max(1, right - left), room.y / Math.max(1, bottom - top)) * zoom;
  const middle = { x: (left + right) / 2, y: (top + bottom) / 2 };
  return ({ x, y }) => ({ x: (width - 50) / 2 + (x - middle.x) * scale + shift.x, y: height / 2 + (y - middle.y) * scale + shift.y });
};
