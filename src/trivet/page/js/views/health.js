// Health of the store: counts, pending work, budgets, and the doctor's findings with their fixes. Users who are not admin
// see their own counts. A store that follows a server also shows its sync state and open decisions.

import { address } from '../address.js';
import { api } from '../api.js';
import { h, refill } from '../dom.js';
import { useStyle } from '../parts/styles.js';
import { drawStanding } from '../parts/sync-standing.js';
import { complain, say } from '../say.js';
import { may, me } from '../session.js';
import { heading } from '../view.js';

// Interval at which running work is polled.
const LOOK_MS = 2_000;
const STATES = { active: 'Active', superseded: 'Superseded', archived: 'Archived', deleted: 'Forgotten' };
const MENDING = { 'reindex lexical': 'Rebuild the word index', 'reindex vectors': 'Recompute all vectors', 'reindex graph': 'Rebuild the concept graph', embed: 'Try again now' };

/** @param {import('../view.js').Place} place */
export async function show(place) {
  const parts = { figures: h('div'), work: h('div', { class: 'stack' }), sync: h('div', { class: 'stack' }), findings: h('div', { class: 'stack' }), budgets: h('div', { class: 'stack' }) };
  const look = looker(place, parts);
  const again = h('button', { type: 'button', on: { click: () => look.all() } }, 'Check again');
  const top = h('div', { class: 'row apart' }, heading('Health'), h('div', { class: 'row' }, again));
  refill(place.main, h('div', { class: 'stack' }, top, parts.figures, parts.work, parts.sync, parts.findings, parts.budgets));
  await Promise.all([useStyle('tools'), me(api)]);
  again.before(h('a', { href: address('people') }, may('admin') ? 'Users, keys and shares' : 'Shares'));
  await look.all();
}

const looker = (place, parts) => {
  let timer = 0;
  const counts = async () => {
    const stats = await api.get('/v1/stats', {}, { signal: place.signal });
    refill(parts.figures, figures(stats));
    refill(parts.work, work(stats));
    clearTimeout(timer);
    if (stats.mending || stats.not_embedded || stats.not_in_graph) timer = setTimeout(() => later(stats.mending), LOOK_MS);
    return stats;
  };
  const later = async (was) => {
    try {
      const { mending } = await counts();
      if (was && !mending) await all();
    } catch (error) {
      complain(error);
    }
  };
  const all = async () => {
    try {
      await counts();
      await drawStanding(parts.sync, place.signal, all);
      if (may('admin')) await Promise.all([findings(), budgets()]);
    } catch (error) {
      complain(error);
    }
  };
  const findings = async () => {
    parts.findings.setAttribute('aria-busy', 'true');
    const found = await api.get('/v1/doctor', {}, { signal: place.signal });
    refill(parts.findings, findingList(found, mend));
    parts.findings.removeAttribute('aria-busy');
  };
  const budgets = async () => refill(parts.budgets, budgetList(await api.get('/v1/budgets', {}, { signal: place.signal })));
  const mend = async (act, button) => {
    button.disabled = true;
    try {
      const { status } = await api.post('/v1/mend', { act });
      say(status === 'started' ? `${MENDING[act]}: started. It continues in the background.` : 'It is already running.');
      await counts();
    } catch (error) {
      button.disabled = false;
      complain(error);
    }
  };
  place.signal.addEventListener('abort', () => clearTimeout(timer));
  return { all };
};

const figures = (stats) => {
  const rows = [
    ...Object.entries(STATES).filter(([state]) => state === 'active' || stats.memories[state]).map(([state, label]) => [label, stats.memories[state] ?? 0]),
    ['Revisions', stats.revisions],
    ['Links', stats.links],
    ['Concepts', stats.concepts],
    stats.statements > 0 && ['Statements', stats.statements],
    ['Passages', stats.passages],
    ['Sensitive', stats.sensitive],
    stats.bytes !== null && ['On disk', bytes(stats.bytes)],
  ].filter(Boolean);
  return h('dl', { class: 'figures' }, rows.map(([label, value]) => h('div', {}, h('dt', {}, label), h('dd', {}, typeof value === 'number' ? value.toLocaleString('en') : value))));
};

const bytes = (count) => (count < 1e6 ? `${Math.ceil(count / 1e3)} kB` : `${(count / 1e6).toFixed(1)} MB`);

/** Pending and failing work, or a note that there is none. */
const work = (stats) => {
  const rows = [
    stats.mending && `Running: ${MENDING[stats.mending]}.`,
    stats.not_embedded > 0 && `${stats.not_embedded} memories wait for vectors; until then, only words find them.`,
    stats.failing_jobs > 0 && `${stats.failing_jobs} of these have failed and will be retried.`,
    stats.not_in_graph > 0 && `${stats.not_in_graph} memories wait to be added to the graph.`,
    stats.last_error && `Last error: ${stats.last_error}`,
    ...stats.notes,
  ].filter(Boolean);
  const trouble = stats.failing_jobs || stats.last_error || stats.notes.length;
  return [h('h2', {}, 'Work'), h('ul', { class: `note ${trouble ? 'warn' : rows.length ? '' : 'good'}` }, (rows.length ? rows : ['Nothing is waiting.']).map((text) => h('li', { class: 'stored' }, text))),
    stats.embedder && h('p', { class: 'help stored' }, `Embedder: ${stats.embedder}.`)];
};

const findingList = (found, mend) => {
  const [wrong, well] = [found.filter((one) => !one.ok), found.filter((one) => one.ok)];
  return [
    h('h2', {}, 'Doctor findings'),
    wrong.length > 0
      ? h('ul', { class: 'list' }, wrong.map((one) => finding(one, mend)))
      : h('p', { class: 'note good' }, `All ${well.length} checks passed.`),
    h('details', {}, h('summary', {}, `${well.length} passed checks`), h('dl', { class: 'steps' }, well.map((one) => [h('dt', {}, one.check), h('dd', { class: 'stored' }, one.detail)]))),
  ];
};

const finding = (one, mend) =>
  h('li', { class: 'finding', 'data-item': one.check, tabindex: '-1' },
    h('h3', { class: 'name' }, h('span', { class: 'state possible' }, 'problem'), one.check),
    h('p', { class: 'stored' }, one.detail),
    one.matters && h('p', { class: 'help' }, one.matters),
    one.remedy && h('p', {}, one.remedy),
    one.mends && h('div', {}, h('button', { type: 'button', class: 'main small', 'data-open': true, on: { click: (event) => mend(one.mends, event.currentTarget) } }, MENDING[one.mends])));

const budgetList = (found) => [
  h('h2', {}, 'Budgets'),
  h('ul', { class: 'list' }, found.map((one) => h('li', { class: 'budget' },
    h('div', { class: 'row apart' }, h('span', {}, one.name), h('span', {}, spent(one))),
    one.allowed > 0 && h('meter', { min: '0', max: String(one.allowed), high: String(one.allowed * 0.9), value: one.used, 'aria-label': `${one.name}: ${spent(one)}` })))),
];

const spent = ({ used, allowed, unit }) =>
  (allowed === null ? `${used.toLocaleString('en')} ${unit}, no limit` : allowed === 0 ? 'not used' : `${used.toLocaleString('en')} of ${allowed.toLocaleString('en')} ${unit}`);
