// A neighborhood in words: nodes and their connections. The list next to the picture has all that the picture shows, for
// users who cannot see it or prefer text.

import { address } from '../address.js';
import { h, stored } from '../dom.js';
import { cut } from './memory.js';

const LABEL_CHARACTERS = 120;
const SHOWN_EDGES = 6;
const ROLES = { about: ['is about', 'is the topic of'], mention: ['mentions', 'is mentioned by'], mentions: ['mentions', 'is mentioned by'] };
const LINKS = {
  supersedes: ['supersedes', 'is superseded by'],
  'resolved-by': ['is resolved by', 'resolves'],
  'part-of': ['is part of', 'contains'],
  'see-also': ['see also', 'see also'],
};

export const nodeKind = (node) =>
  node.kind === 'memory' ? 'memory' : `${node.concept_kind ?? 'concept'}, in ${node.memories ?? 0} ${node.memories === 1 ? 'memory' : 'memories'}`;

/** The edge as a verb, from its source or its target. */
export const verbOf = (edge, fromSource) => {
  const known = edge.kind === 'link' ? LINKS[edge.relation] : edge.kind === 'mention' ? ROLES[edge.relation] ?? ROLES.mentions : null;
  if (known) return known[fromSource ? 0 : 1];
  const words = edge.relation.replaceAll('_', ' ');
  return fromSource ? words : `← ${words}`;
};

/** @returns {{edge: object, other: object, verb: string}[]} */
export const connections = (node, graph) =>
  graph.edges.filter((edge) => edge.source === node.id || edge.target === node.id).flatMap((edge) => {
    const fromSource = edge.source === node.id;
    const other = graph.byId.get(fromSource ? edge.target : edge.source);
    return other ? [{ edge, other, verb: verbOf(edge, fromSource) }] : [];
  });

/** Details of the selected node. */
export const nodeDetails = (node, graph, walkTo) => {
  const joined = connections(node, graph);
  return [
    h('h2', { class: 'stored', dir: 'auto' }, cut(node.label, LABEL_CHARACTERS)),
    h('p', { class: 'help' }, `${shapeWord(node)} · ${nodeKind(node)}${node.sensitive ? ' · sensitive' : ''}`),
    h('div', { class: 'row' },
      node.distance > 0 && h('button', { type: 'button', class: 'small', on: { click: () => walkTo(node) } }, 'Go here'),
      node.kind === 'memory'
        ? h('a', { href: address('memory', [node.id]) }, 'Open the memory')
        : h('a', { href: address('search', [], { query: node.label }) }, 'Search for it')),
    h('ul', { class: 'relations' }, joined.slice(0, SHOWN_EDGES).map(({ edge, other, verb }) =>
      h('li', {}, `${verb} `, h('strong', {}, stored(cut(other.label, 48))), validity(edge)))),
    joined.length > SHOWN_EDGES && h('p', { class: 'help' }, `and ${joined.length - SHOWN_EDGES} more`),
  ];
};

const shapeWord = (node) => (node.kind === 'memory' ? 'square' : 'circle');

/** The time in which a statement holds. */
const validity = ({ valid_from: from, valid_to: to }) =>
  (from || to) && h('span', { class: 'help' }, ` ${from ? `from ${from.slice(0, 10)}` : ''} ${to ? `to ${to.slice(0, 10)}` : ''}`);

/** The same nodes as a list, nearest first; Enter goes to a node. */
export const nodeList = (graph, point, walkTo) =>
  h('ol', { class: 'list nodes', 'aria-label': 'What is connected' }, graph.nodes.map((node) => {
    const walk = () => walkTo(node);
    const from = node.distance === 0 ? [] : connections(node, graph).filter(({ other }) => other.distance < node.distance).slice(0, 1);
    return h('li', { 'data-item': node.id, tabindex: '-1', on: { focusin: () => point(node), pointerenter: () => point(node) } },
      h('button', { type: 'button', class: 'node-name', 'data-open': true, on: { click: walk } },
        h('span', { class: `shape ${node.kind}`, 'aria-hidden': 'true' }), h('span', { class: 'stored', dir: 'auto' }, cut(node.label, LABEL_CHARACTERS))),
      h('span', { class: 'help' }, node.distance === 0 ? `Here · ${nodeKind(node)}` : [`${nodeKind(node)}`, from.map(({ verb, other }) => [` · ${verb} `, stored(cut(other.label, 40))])]));
  }));
