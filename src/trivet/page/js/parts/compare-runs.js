// Two lab runs, read in this browser from the files of `trivet lab run`; nothing is sent.

import { address } from '../address.js';
import { h, refill, stored } from '../dom.js';
import { legChanges, moveMark } from './moves.js';

const FILE = 'per_query.jsonl';
const USUAL = 'nDCG@10';
const SHOWN_AT_ONCE = 100;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Two fields for files, and the table once both are read. @param {(error: Error) => void} complain */
export const compareRuns = (complain) => {
  const runs = { A: null, B: null };
  const room = h('div', { class: 'stack' });
  const field = (name) => h('label', { class: 'field' }, h('span', {}, `${FILE} of run ${name}`),
    h('input', { type: 'file', name: `run-${name}`, accept: '.jsonl,.json', multiple: true, on: { change: (event) => taken(name, event.currentTarget.files) } }));
  const taken = async (name, files) => {
    try {
      runs[name] = await readRun([...files]);
      if (runs.A && runs.B) refill(room, table(runs.A, runs.B));
    } catch (error) {
      complain(error);
    }
  };
  return h('div', { class: 'stack' },
    h('p', { class: 'help' }, 'Choose the file of each run’s folder, with its manifest.json if you like. They are read in this browser and never sent.'),
    h('div', { class: 'recipes' }, field('A'), field('B')), room);
};

const readRun = async (files) => {
  const named = (ending) => files.find((file) => file.name.endsWith(ending));
  const file = named('.jsonl');
  if (!file) throw new Error(`Choose ${FILE}, which \`trivet lab run\` writes into the folder of each run.`);
  const manifest = named('manifest.json') ? JSON.parse(await named('manifest.json').text()) : {};
  return { name: String(manifest.config ?? file.name), queries: linesOf(await file.text(), file.name) };
};

const linesOf = (text, name) => {
  const found = new Map();
  text.split('\n').forEach((line, at) => {
    if (!line.trim()) return;
    let value;
    try {
      value = JSON.parse(line);
    } catch {
      throw new Error(`${name}, line ${at + 1}: not JSON.`);
    }
    if (typeof value?.query !== 'string' || typeof value.measures !== 'object') throw new Error(`${name}, line ${at + 1}: no query with measures.`);
    found.set(value.query, value);
  });
  if (!found.size) throw new Error(`${name} has no queries.`);
  return found;
};

const table = (one, other) => {
  const common = [...one.queries.keys()].filter((id) => other.queries.has(id));
  const measures = [...new Set(common.flatMap((id) => Object.keys(one.queries.get(id).measures)))];
  const state = { measure: measures.includes(USUAL) ? USUAL : measures[0], text: '', most: SHOWN_AT_ONCE };
  const body = h('div', { class: 'stack' });
  const draw = () => refill(body, drawn(one, other, common, state, draw));
  const choice = h('select', { name: 'measure', on: { change: () => { state.measure = choice.value; draw(); } } },
    measures.map((name) => h('option', { value: name, selected: name === state.measure }, name)));
  const filter = h('input', { type: 'search', name: 'filter', placeholder: 'words, a stratum, an id', on: { input: () => { state.text = filter.value.toLowerCase(); state.most = SHOWN_AT_ONCE; draw(); } } });
  draw();
  return h('div', { class: 'stack' }, h('div', { class: 'inline' }, h('label', { class: 'field' }, h('span', {}, 'Measure'), choice), h('label', { class: 'field' }, h('span', {}, 'Only queries with'), filter)), body);
};

const drawn = (one, other, common, state, draw) => {
  const rows = common.map((id) => rowOf(id, one, other, state.measure)).filter((row) => row.difference !== null && matches(row, state.text));
  rows.sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference) || (a.id < b.id ? -1 : 1));
  const [better, worse] = [rows.filter((row) => row.difference > 0).length, rows.filter((row) => row.difference < 0).length];
  return [
    h('p', { class: 'note', role: 'status' }, `${rows.length} queries: ${better} better in B, ${worse} worse, ${rows.length - better - worse} equal. Mean ${mean(rows, 'before')} → ${mean(rows, 'after')}.`),
    h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Queries' }, h('table', { class: 'queries' },
      h('thead', {}, h('tr', {}, ['Query', one.name, other.name, 'Difference'].map((text, at) => h('th', { scope: 'col', class: at ? 'number' : '' }, stored(text))))),
      h('tbody', {}, rows.slice(0, state.most).map(lineOf)))),
    rows.length > state.most && h('button', { type: 'button', on: { click: () => { state.most += SHOWN_AT_ONCE; draw(); } } }, `Show more of ${rows.length}`),
  ];
};

const rowOf = (id, one, other, measure) => {
  const [a, b] = [one.queries.get(id), other.queries.get(id)];
  const [before, after] = [a.measures[measure], b.measures[measure]];
  const known = typeof before === 'number' && typeof after === 'number';
  return { id, a, b, before, after, difference: known ? after - before : null };
};

const matches = ({ id, a }, text) => !text || [id, a.text ?? '', a.stratum ?? ''].some((one) => one.toLowerCase().includes(text));

const mean = (rows, name) => (rows.length ? rows.reduce((sum, row) => sum + row[name], 0) / rows.length : 0).toFixed(3);

const lineOf = (row) => {
  const open = h('button', { type: 'button', class: 'node-name', 'data-open': true, 'aria-expanded': 'false', on: { click: () => turn() } }, stored(row.a.text ?? row.id));
  const details = h('div', { class: 'stack', hidden: true });
  const turn = () => {
    details.hidden = !details.hidden;
    open.setAttribute('aria-expanded', String(!details.hidden));
    if (!details.hidden && !details.children.length) refill(details, whatMoved(row));
  };
  const way = row.difference > 0 ? 'better' : row.difference < 0 ? 'worse' : '';
  return h('tr', { 'data-item': row.id, tabindex: '-1' },
    h('td', {}, open, h('span', { class: 'help' }, stored([row.id, row.a.stratum].filter(Boolean).join(' · '))), details),
    h('td', { class: 'number' }, row.before.toFixed(3)), h('td', { class: 'number' }, row.after.toFixed(3)),
    h('td', { class: `number difference ${way}` }, `${row.difference > 0 ? '+' : ''}${row.difference.toFixed(3)}`));
};

/** The documents of both runs, those of B first, with each leg's contribution. */
const whatMoved = ({ a, b }) => {
  const [before, after] = [ranked(a), ranked(b)];
  const ids = [...new Set([...after.keys(), ...before.keys()])];
  if (!ids.length) return h('p', { class: 'help' }, 'These files do not contain the hits.');
  return h('ol', { class: 'relations' }, ids.map((id) => {
    const [old, now] = [before.get(id) ?? null, after.get(id) ?? null];
    const why = old && now ? legChanges(legsOf(old.hit), legsOf(now.hit)) : [];
    return h('li', {}, `${now ? `${now.rank}. ` : ''}`, ID.test(id) ? h('a', { class: 'stored', href: address('memory', [id]) }, id) : stored(id), ' ', moveMark(old?.rank ?? null, now?.rank ?? null), why.length > 0 && h('span', { class: 'help' }, ` ${why.join('; ')}`));
  }));
};

const ranked = (line) => new Map((line.top ?? []).map((hit, at) => [hit.document, { rank: at + 1, hit }]));
const legsOf = (hit) => Object.fromEntries(Object.entries(hit.legs ?? {}).map(([leg, part]) => [leg, { rank: part.rank ?? null, gave: part.score ?? 0 }]));
