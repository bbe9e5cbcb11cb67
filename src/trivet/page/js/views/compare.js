// Comparison of two recipes on one query, or of two lab runs from their files.
// #/compare?query=...&a=RECIPE&b=RECIPE, or #/compare?runs=files

import { address, parameters } from '../address.js';
import { api } from '../api.js';
import { h, refill } from '../dom.js';
import { currentItem } from '../keys.js';
import { compareRecipes, RECIPES, showGrade } from '../parts/compare-recipes.js';
import { compareRuns } from '../parts/compare-runs.js';
import { GRADES, gradeBar, gradesOf } from '../parts/grades.js';
import { useStyle } from '../parts/styles.js';
import { complain, say } from '../say.js';
import { me } from '../session.js';
import { heading } from '../view.js';

let judge = () => {};

/** @param {import('../view.js').Place} place */
export async function show(place) {
  const byFiles = place.query.has('runs');
  const body = h('div', { class: 'stack' });
  refill(place.main, h('div', { class: 'stack' }, h('div', { class: 'row apart' }, heading('Compare'), tabs(byFiles)), body));
  const [own] = await Promise.all([me(api), useStyle('tools')]);
  judge = () => {};
  if (byFiles) refill(body, compareRuns(complain));
  else await showRecipes(place, body, gradesOf(own.user));
}

const tabs = (byFiles) =>
  h('nav', { class: 'tabs', 'aria-label': 'What to compare' },
    h('a', { href: address('compare'), 'aria-current': byFiles ? null : 'page' }, 'Two recipes'),
    h('a', { href: address('compare', [], { runs: 'files' }), 'aria-current': byFiles ? 'page' : null }, 'Two lab runs'));

const showRecipes = async (place, body, grades) => {
  const room = h('div', { class: 'stack' });
  const bar = gradeBar(grades);
  const fields = { query: field('query', 'Query', place, { required: true, 'data-search': true, maxlength: '1000' }), a: field('a', 'Recipe A', place, RECIPE), b: field('b', 'Recipe B', place, RECIPE) };
  const asked = () => Object.fromEntries(Object.entries(fields).map(([name, { input }]) => [name, input.value.trim()]));
  const graded = (id, grade) => {
    const { query } = asked();
    const now = grades.set(query, id, grade);
    showGrade(room, id, now);
    bar.draw();
    say(now === null ? 'Grade removed.' : `Graded ${now}: ${GRADES[now]}.`);
  };
  const run = async () => {
    const values = asked();
    place.replace(parameters(values));
    if (!values.query) return;
    room.setAttribute('aria-busy', 'true');
    try {
      await compareRecipes(place, room, values, grades, graded);
    } catch (error) {
      complain(error);
    }
    room.removeAttribute('aria-busy');
  };
  judge = (grade) => {
    const item = currentItem();
    if (item) graded(item.dataset.item, grade);
  };
  const submit = (event) => {
    event.preventDefault();
    run();
  };
  document.addEventListener('trivet:grades', run, { signal: place.signal });
  refill(body,
    h('form', { on: { submit } }, fields.query.element, h('div', { class: 'recipes' }, fields.a.element, fields.b.element),
      h('datalist', { id: 'recipes' }, RECIPES.map((value) => h('option', { value }))),
      h('div', { class: 'row apart' }, bar.element, h('button', { type: 'submit', class: 'main' }, 'Compare'))),
    room);
  await run();
};

const RECIPE = { list: 'recipes', placeholder: 'as configured', maxlength: '500', spellcheck: 'false' };

const field = (name, label, place, more) => {
  const input = h('input', { name, value: place.query.get(name) ?? '', autocomplete: 'off', ...more });
  return { input, element: h('label', { class: 'field' }, h('span', {}, label), input) };
};

export const keys = GRADES.map((meaning, grade) => ({ key: String(grade), does: `Grade the hit: ${meaning}`, act: () => judge(grade) }));
