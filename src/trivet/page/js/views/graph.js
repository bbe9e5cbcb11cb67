// The neighborhood of a memory or a concept: an interactive picture, the same as a list, and a time slider.
// #/graph?start=...&depth=2&limit=80&as_of=2026-11-03, and the filters.

import { address, parameters } from '../address.js';
import { api, isAbort } from '../api.js';
import { h, refill } from '../dom.js';
import { chosen, filterBar } from '../filters.js';
import { graphPicture } from '../parts/graph-picture.js';
import { timeSlider } from '../parts/graph-time.js';
import { nodeDetails, nodeKind, nodeList } from '../parts/graph-words.js';
import { useStyle } from '../parts/styles.js';
import { complain } from '../say.js';
import { heading } from '../view.js';

const FILTERS = ['scope', 'category', 'tags', 'state', 'source'];
const DEPTHS = [1, 2, 3, 4];
const LIMITS = [40, 80, 150, 300, 500];
const USUAL = { depth: 2, limit: 80 };
const PAUSE_MS = 160;
const OFFERED = 12;
const BEGINNINGS = 24;

/** @param {import('../view.js').Place} place */
export async function show(place) {
  const ways = { walkTo: (node) => place.go(address('graph', [], { ...asked(place.query), start: node.id })) };
  const parts = build(place, ways);
  const load = loader(place, parts, ways);
  parts.changed.act = load;
  refill(place.main, h('div', { class: 'stack graph-view' }, h('div', { class: 'unseen' }, heading('Graph')), parts.top, parts.body));
  await useStyle('tools');
  await Promise.all([load(), parts.time.fill().catch(complain)]);
}

const asked = (query) => ({ start: query.get('start'), depth: query.get('depth'), limit: query.get('limit'), as_of: query.get('as_of'), ...chosen(query, FILTERS) });

const build = (place, { walkTo }) => {
  const changed = { act: () => {} };
  const change = (values, options) => {
    place.replace(parameters({ ...asked(place.query), ...values }));
    changed.act(options);
  };
  const time = timeSlider(place, (as_of) => change({ as_of }, { still: true }));
  const details = h('section', { class: 'card pointed', 'aria-label': 'Selected node', 'aria-live': 'polite' });
  const side = h('div', { class: 'beside' });
  const graph = { now: null };
  const point = (node) => {
    picture.mark(node);
    refill(details, nodeDetails(node, graph.now, walkTo));
  };
  const picture = graphPicture({ point, walkTo, signal: place.signal });
  const number = (name, values) => {
    const select = h('select', { name, on: { change: () => change({ [name]: select.value }) } },
      values.map((value) => h('option', { value, selected: value === (Number(place.query.get(name)) || USUAL[name]) }, value)));
    return h('label', { class: 'field' }, h('span', {}, name === 'depth' ? 'Steps' : 'Nodes'), select);
  };
  const note = h('p', { class: 'help', role: 'status' });
  const top = h('div', { class: 'stack' },
    h('div', { class: 'graph-controls' }, conceptSearch(place), number('depth', DEPTHS), number('limit', LIMITS), time.element),
    h('div', { class: 'row apart' }, filterBar(place, { names: FILTERS, changed: () => changed.act() }), note));
  const body = h('div', { class: 'graph-body' });
  return { top, body, time, details, side, picture, point, note, changed, graph };
};

const loader = (place, parts, { walkTo }) => {
  let older = new AbortController();
  return async (options = {}) => {
    older.abort();
    older = new AbortController();
    const signal = AbortSignal.any([older.signal, place.signal]);
    try {
      const values = { ...USUAL, ...withoutEmpty(asked(place.query)) };
      if (!values.start) return await drawBeginnings(place, parts, signal);
      const graph = withNames(await api.get('/v1/graph', values, { signal }));
      draw(place, parts, graph, walkTo, options);
    } catch (error) {
      if (isAbort(error)) return undefined;
      if (error.status === 404) notThere(parts, error);
      else complain(error);
    }
    return undefined;
  };
};

const withoutEmpty = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null && value !== ''));

/** Ids of concepts (names) and memories (UUIDs) never collide. */
const withNames = (graph) => ({ ...graph, byId: new Map(graph.nodes.map((node) => [node.id, node])) });

const draw = (place, parts, graph, walkTo, options) => {
  const [start] = graph.nodes;
  parts.graph.now = graph;
  place.title(`${start.label.slice(0, 60)} · Graph`);
  refill(parts.note, told(graph));
  if (!parts.body.contains(parts.picture.element)) {
    refill(parts.body, h('div', { class: 'stack' }, parts.picture.element, legend()), h('div', { class: 'stack side' }, parts.details, parts.side));
  }
  parts.picture.show(graph, options);
  refill(parts.side, nodeList(graph, parts.point, walkTo));
  parts.point(start);
};

const told = ({ nodes, edges, truncated, not_in_graph: waiting }) =>
  [`${nodes.length} nodes, ${edges.length} connections`, truncated && 'more not shown', waiting > 0 && `${waiting} memories are not in the graph yet`].filter(Boolean).join('; ');

const legend = () =>
  h('ul', { class: 'legend help', 'aria-label': 'What the shapes mean' },
    h('li', {}, h('span', { class: 'shape memory' }), 'memory'),
    h('li', {}, h('span', { class: 'shape concept' }), 'concept'),
    h('li', {}, h('span', { class: 'stroke mention' }), 'mentions'),
    h('li', {}, h('span', { class: 'stroke link' }), 'link'),
    h('li', {}, h('span', { class: 'stroke statement' }), 'statement'));

const notThere = (parts, error) => {
  refill(parts.note);
  refill(parts.body, h('div', { class: 'card empty' }, h('h2', {}, 'Nothing with that name'), h('p', { class: 'stored' }, error.message)));
};

/** Without a start: the concepts that are mentioned most. */
const drawBeginnings = async (place, parts, signal) => {
  const page = await api.get('/v1/concepts', { limit: BEGINNINGS, ...chosen(place.query, FILTERS) }, { signal });
  refill(parts.note, `${page.total} concepts`);
  refill(parts.body, page.concepts.length
    ? h('section', { class: 'stack' }, h('h2', {}, 'Most mentioned'), h('ul', { class: 'list beginnings' }, page.concepts.map((concept) =>
      h('li', { 'data-item': concept.name, tabindex: '-1' },
        h('a', { 'data-open': true, class: 'stored', href: address('graph', [], { ...asked(place.query), start: concept.label }) }, concept.label), ' ',
        h('span', { class: 'help' }, nodeKind({ ...concept, kind: 'concept', concept_kind: concept.kind }))))))
    : h('div', { class: 'card empty' }, h('h2', {}, 'No concepts yet'), h('p', {}, 'The graph grows from what memories mention.')));
};

/** Suggests concepts while the user types; Enter takes the text as it is. */
const conceptSearch = (place) => {
  let timer = 0;
  const offers = h('datalist', { id: 'concept-offers' });
  const input = h('input', {
    type: 'search', name: 'start', 'data-search': true, list: 'concept-offers', autocomplete: 'off', spellcheck: 'false', maxlength: '200',
    placeholder: 'A name, word or id', value: place.query.get('start') ?? '', on: { input: () => soon() },
  });
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => offer(input.value.trim(), offers, place.signal), PAUSE_MS);
  };
  const submit = (event) => {
    event.preventDefault();
    place.go(address('graph', [], { ...asked(place.query), start: input.value.trim() }));
  };
  place.signal.addEventListener('abort', () => clearTimeout(timer));
  return h('form', { class: 'concept-search', role: 'search', on: { submit } },
    h('label', { class: 'field' }, h('span', {}, 'Start at a concept or memory'), input), offers, h('button', { type: 'submit' }, 'Show'));
};

const offer = async (text, offers, signal) => {
  if (!text) return;
  try {
    const { concepts } = await api.get('/v1/concepts', { text, limit: OFFERED }, { signal });
    refill(offers, concepts.map((concept) => h('option', { value: concept.label }, `${concept.kind}, ${concept.memories}`)));
  } catch (error) {
    if (error.status !== 422) complain(error); // a text without letters is not a name
  }
};

export const keys = [
  { key: 'p', does: 'Focus the picture: arrow keys move between nodes', act: () => document.querySelector('main .picture')?.focus() },
  { key: 'u', does: 'Back to the previous node', act: () => history.back() },
];
