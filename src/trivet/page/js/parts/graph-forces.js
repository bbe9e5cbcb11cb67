// Force layout of a graph: nodes repel each other, edges pull their ends together, and all are pulled to the middle. Plain
// sums over all pairs: 500 nodes are 125,000 pairs, a few milliseconds per step.

/** @typedef {{id: string, x: number, y: number, vx: number, vy: number, held?: boolean}} Body */

const PUSH = 2600;
// Beyond this, nodes do not repel each other, so that separate parts do not fly off.
const REACH = 520;
const SPRING = 0.06;
const LENGTH = 92;
const TO_THE_MIDDLE = 0.012;
const FRICTION = 0.62;
const FASTEST = 48;
// The heat of a new layout, its cooling per step, and the heat below which no motion is visible.
export const HOT = 1;
const COOLING = 0.975;
export const CALM = 0.03;

/** One step. `heat` scales every force. @param {Body[]} bodies @param {[Body, Body][]} pairs */
export const step = (bodies, pairs, heat) => {
  pushApart(bodies, heat);
  for (const [one, other] of pairs) pull(one, other, heat);
  for (const body of bodies) move(body, heat);
  return heat * COOLING;
};

/** All steps at once, for users who want no motion. */
export const settle = (bodies, pairs, heat = HOT) => {
  for (let left = heat; left > CALM;) left = step(bodies, pairs, left);
};

const pushApart = (bodies, heat) => {
  for (let at = 0; at < bodies.length; at += 1) {
    const one = bodies[at];
    for (let next = at + 1; next < bodies.length; next += 1) {
      const other = bodies[next];
      let dx = one.x - other.x;
      let dy = one.y - other.y;
      if (dx > REACH || dx < -REACH || dy > REACH || dy < -REACH) continue;
      if (dx === 0 && dy === 0) [dx, dy] = [0.1 * (at + 1), 0.1 * (next + 1)]; // two on one spot must part somehow
      const square = Math.max(dx * dx + dy * dy, 64);
      const force = (PUSH * heat) / square / Math.sqrt(square);
      one.vx += dx * force;
      one.vy += dy * force;
      other.vx -= dx * force;
      other.vy -= dy * force;
    }
  }
};

const pull = (one, other, heat) => {
  const dx = other.x - one.x;
  const dy = other.y - one.y;
  const distance = Math.hypot(dx, dy) || 1;
  const force = (SPRING * heat * (distance - LENGTH)) / distance;
  one.vx += dx * force;
  one.vy += dy * force;
  other.vx -= dx * force;
  other.vy -= dy * force;
};

const move = (body, heat) => {
  if (body.held) {
    body.vx = body.vy = 0;
    return;
  }
  body.vx = limited((body.vx - body.x * TO_THE_MIDDLE * heat) * FRICTION);
  body.vy = limited((body.vy - body.y * TO_THE_MIDDLE * heat) * FRICTION);
  body.x += body.vx;
  body.y += body.vy;
};

const limited = (speed) => Math.max(-FASTEST, Math.min(FASTEST, speed));

/**
 * The bodies of nodes: known ones keep their places, a new one starts next to its first known neighbor.
 * @param {{id: string}[]} nodes @param {{source: string, target: string}[]} edges @param {Map<string, Body>} known
 */
export const placed = (nodes, edges, known) => {
  const bodies = new Map();
  const beside = neighbours(edges);
  nodes.forEach((node, number) => {
    const old = known.get(node.id);
    const anchor = old ?? [...(beside.get(node.id) ?? [])].map((id) => bodies.get(id) ?? known.get(id)).find(Boolean);
    bodies.set(node.id, { id: node.id, vx: 0, vy: 0, ...(old ? { x: old.x, y: old.y } : around(anchor, number)), held: false, old: Boolean(old) });
  });
  return bodies;
};

// The golden angle spreads any number of points evenly and deterministically.
const around = (anchor, number) => {
  const far = anchor ? 60 : number === 0 ? 0 : 40 + 8 * Math.sqrt(number);
  const angle = number * 2.399963;
  return { x: (anchor?.x ?? 0) + far * Math.cos(angle), y: (anchor?.y ?? 0) + far * Math.sin(angle) };
};

const neighbours = (edges) => {
  const found = new Map();
  const note = (one, other) => found.set(one, (found.get(one) ?? new Set()).add(other));
  for (const { source, target } of edges) {
    note(source, target);
    note(target, source);
  }
  return found;
};
