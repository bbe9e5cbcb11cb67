// The picture of a neighborhood: squares are memories, circles concepts; plain lines mentions, thick arrows links, dotted
// lines statements. It moves until it is calm, or is settled before it is shown if the user wants no motion. Arrow keys move
// between nodes, Enter goes to one.

import { h, refill, s } from '../dom.js';
import { CALM, HOT, placed, settle, step } from './graph-forces.js';
import { gestures } from './graph-gestures.js';
import { arrowHead, boundsOf, edgeLine, importance, LABEL_CHARACTERS, markOf, middleOf, scaled, withRoom } from './graph-shapes.js';
import { cut } from './memory.js';

const STEPS_A_FRAME = 3;
const ZOOM = 1.35;
const [SMALLEST, LARGEST] = [0.4, 8];

// Nodes keep their places when the user moves on or changes the time.
const MOST_PLACES = 5_000;
let lastPlaces = new Map();

/** @param {{point: (node: object) => void, walkTo: (node: object) => void, signal: AbortSignal}} acts */
export const graphPicture = (acts) => new Picture(acts);

class Picture {
  constructor({ point, walkTo, signal }) {
    Object.assign(this, { point, walkTo, signal });
    this.bodies = new Map();
    this.pairs = [];
    this.zoom = 1;
    this.shift = { x: 0, y: 0 };
    this.heat = 0;
    this.frame = 0;
    this.lines = s('g', { class: 'edges' });
    this.shapes = s('g', { class: 'nodes' });
    this.svg = s('svg', { 'aria-hidden': 'true', focusable: 'false' }, arrowHead(), this.lines, this.shapes);
    this.element = h('div', {
      class: 'picture', tabindex: '0', role: 'application', 'aria-roledescription': 'graph', 'aria-label': 'Graph', 'data-state': 'calm',
      on: { keydown: (event) => this.keyed(event) },
    }, this.svg, this.buttons());
    this.hand = gestures(this.element, {
      signal,
      pan: (x, y) => {
        this.shift = { x: this.shift.x + x, y: this.shift.y + y };
        this.moved();
      },
      enlarge: (factor, at) => this.enlarge(factor, at),
    });
    const resized = new ResizeObserver(() => {
      this.draw();
      if (this.graph && this.heat <= CALM) this.label();
    });
    resized.observe(this.element);
    signal.addEventListener('abort', () => {
      resized.disconnect();
      cancelAnimationFrame(this.frame);
    });
  }

  /** @param {object} graph @param {{still?: boolean}} [options] still: existing nodes keep their places */
  show(graph, { still = false } = {}) {
    this.graph = graph;
    this.bodies = placed(graph.nodes, graph.edges, lastPlaces);
    lastPlaces = new Map([...(lastPlaces.size < MOST_PLACES ? lastPlaces : []), ...this.bodies]);
    const kept = [...this.bodies.values()].filter((body) => body.old);
    for (const body of kept) body.held = still;
    this.keptBounds = still && kept.length ? this.bounds : null; // else existing nodes would move with the frame
    this.pairs = graph.edges.map((edge) => [this.bodies.get(edge.source), this.bodies.get(edge.target)]).filter(([one, other]) => one && other && one !== other);
    this.build();
    this.element.setAttribute('aria-label', `Graph of ${graph.nodes.length} memories and concepts. Arrow keys go from one to another, Enter walks there. The list has the same.`);
    this.zoom = 1;
    this.shift = { x: 0, y: 0 };
    this.start(still && kept.length === graph.nodes.length ? 0 : kept.length > graph.nodes.length / 2 ? HOT / 2 : HOT);
  }

  build() {
    this.drawn = this.graph.nodes.map((node) => this.shape(node));
    this.drawnEdges = this.graph.edges.map((edge) => ({ edge, line: edgeLine(edge) })).filter(({ edge }) => this.bodies.has(edge.source) && this.bodies.has(edge.target));
    refill(this.lines, this.drawnEdges.map(({ line }) => line));
    refill(this.shapes, this.drawn.map(({ group }) => group));
  }

  shape(node) {
    const { size, mark } = markOf(node);
    const group = s('g', {
      class: `node ${node.kind} ${node.distance === 0 ? 'start' : ''} ${node.sensitive ? 'sensitive' : ''}`,
      on: { pointerenter: () => this.select(node), click: () => this.hand.moved || this.walkTo(node) },
    }, mark, s('text', { x: size + 5, y: 4, direction: 'auto' }, cut(node.label, LABEL_CHARACTERS)));
    return { node, group, size, letters: Math.min(node.label.length, LABEL_CHARACTERS) };
  }

  start(heat) {
    this.heat = heat;
    cancelAnimationFrame(this.frame);
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) {
      settle([...this.bodies.values()], this.pairs, heat);
      this.heat = 0;
    }
    this.element.dataset.state = this.heat > CALM ? 'moving' : 'calm';
    this.tick();
  }

  tick() {
    const bodies = [...this.bodies.values()];
    for (let number = 0; number < STEPS_A_FRAME && this.heat > CALM; number += 1) this.heat = step(bodies, this.pairs, this.heat);
    this.draw();
    if (this.heat > CALM) this.frame = requestAnimationFrame(() => this.tick());
    else this.calm();
  }

  calm() {
    this.element.dataset.state = 'calm';
    this.label();
  }

  /** Shows labels that cover no other: the selected node first, then those near it, then near the start. */
  label() {
    const near = this.near ?? new Set();
    const order = [...this.drawn].sort((one, other) => importance(one.node, this.selected, near) - importance(other.node, this.selected, near));
    const shown = withRoom(order, (node) => this.at(this.bodies.get(node.id)));
    for (const one of order) one.group.classList.toggle('labelled', shown.has(one));
  }

  /** Only positions scale with the frame; nodes keep their size. */
  draw() {
    const { width, height } = this.element.getBoundingClientRect();
    if (!this.graph || !width) return;
    this.bounds = this.keptBounds ?? boundsOf([...this.bodies.values()]);
    const at = scaled(this.bounds, width, height, this.zoom, this.shift);
    for (const { node, group } of this.drawn) {
      const { x, y } = at(this.bodies.get(node.id));
      group.setAttribute('transform', `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    }
    for (const { edge, line } of this.drawnEdges) {
      const [one, other] = [at(this.bodies.get(edge.source)), at(this.bodies.get(edge.target))];
      const far = Math.hypot(other.x - one.x, other.y - one.y) || 1;
      const short = edge.kind === 'link' || edge.kind === 'statement' ? 12 / far : 0; // the arrow ends before the shape
      line.setAttribute('x1', one.x.toFixed(1));
      line.setAttribute('y1', one.y.toFixed(1));
      line.setAttribute('x2', (other.x - (other.x - one.x) * short).toFixed(1));
      line.setAttribute('y2', (other.y - (other.y - one.y) * short).toFixed(1));
    }
    this.at = at;
  }

  select(node) {
    if (this.selected === node.id) return;
    this.mark(node);
    this.point(node);
  }

  /** Marks a node and its connections. */
  mark(node) {
    this.selected = node.id;
    const near = new Set([node.id]);
    for (const { edge, line } of this.drawnEdges ?? []) {
      const touches = edge.source === node.id || edge.target === node.id;
      line.classList.toggle('near', touches);
      if (touches) near.add(edge.source).add(edge.target);
    }
    for (const { node: one, group } of this.drawn ?? []) {
      group.classList.toggle('selected', one.id === node.id);
      group.classList.toggle('near', near.has(one.id));
    }
    this.near = near;
    if (this.at && this.heat <= CALM) this.label();
  }

  keyed(event) {
    const node = this.graph?.byId.get(this.selected) ?? this.graph?.nodes[0];
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!node || event.target !== this.element || event.ctrlKey || event.altKey || event.metaKey) return;
    if (way) this.select(this.towards(node, way) ?? node);
    else if (event.key === 'Enter') this.walkTo(node);
    else return;
    event.preventDefault();
  }

  /** The nearest node in a direction; sideways distance counts more. */
  towards(from, [right, down]) {
    const here = this.bodies.get(from.id);
    const ahead = this.graph.nodes.map((node) => {
      const { x, y } = this.bodies.get(node.id);
      const [along, aside] = [(x - here.x) * right + (y - here.y) * down, Math.abs((x - here.x) * down) + Math.abs((y - here.y) * right)];
      return { node, along, cost: along + 2 * aside };
    });
    return ahead.filter(({ along, node }) => along > 1 && node !== from).sort((one, other) => one.cost - other.cost)[0]?.node;
  }

  moved() {
    this.draw();
    this.label();
  }

  /** Zooms by a factor around this point of the frame. */
  enlarge(factor, at) {
    const zoom = Math.min(LARGEST, Math.max(SMALLEST, this.zoom * factor));
    const middle = middleOf(this.element);
    for (const axis of ['x', 'y']) this.shift[axis] = at[axis] - middle[axis] - (at[axis] - middle[axis] - this.shift[axis]) * (zoom / this.zoom);
    this.zoom = zoom;
    this.moved();
  }

  fit() {
    Object.assign(this, { zoom: 1, shift: { x: 0, y: 0 }, keptBounds: null });
    this.moved();
  }

  buttons() {
    const button = (text, label, act) => h('button', { type: 'button', class: 'small', 'aria-label': label, title: label, on: { click: act } }, text);
    const zoomed = (factor) => () => this.enlarge(factor, middleOf(this.element));
    return h('div', { class: 'zoom' }, button('+', 'Zoom in', zoomed(ZOOM)), button('−', 'Zoom out', zoomed(1 / ZOOM)), button('Fit', 'Fit to the frame', () => this.fit()));
  }
}
