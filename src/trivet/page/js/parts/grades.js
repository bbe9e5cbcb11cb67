// The user's grades of hits: 0 does not help, 1 related, 2 helps, 3 answers. Kept in this browser, per user and server;
// `trivet lab from-store --judged FILE` turns the saved file into a dataset.

import { h, refill } from '../dom.js';

export const GRADES = ['does not help', 'related', 'helps', 'answers'];
const NAME = 'trivet.grades.';

/** @param {string} user whose grades they are */
export const gradesOf = (user) => {
  const place = NAME + user;
  const read = () => {
    try {
      return new Map(JSON.parse(localStorage.getItem(place) ?? '[]').map(([query, grades]) => [query, new Map(grades)]));
    } catch {
      return new Map(); // the stored value is not ours
    }
  };
  const write = (all) => localStorage.setItem(place, JSON.stringify([...all].map(([query, grades]) => [query, [...grades]])));
  return {
    of: (query, id) => read().get(query)?.get(id) ?? null,
    /** The same grade again removes it. */
    set(query, id, grade) {
      const all = read();
      const grades = all.get(query) ?? new Map();
      if (grades.get(id) === grade) grades.delete(id);
      else grades.set(id, grade);
      if (grades.size) all.set(query, grades);
      else all.delete(query);
      write(all);
      return grades.get(id) ?? null;
    },
    counts() {
      const all = [...read().values()];
      return { queries: all.length, grades: all.reduce((sum, grades) => sum + grades.size, 0) };
    },
    lines: () => [...read()].flatMap(([query, grades]) => [...grades].map(([id, grade]) => `${JSON.stringify({ query, id, grade })}\n`)),
    clear: () => localStorage.removeItem(place),
  };
};

/** @param {(grade: number) => void} chosen */
export const gradeButtons = (grade, name, chosen) =>
  h('span', { class: 'grades', role: 'group', 'aria-label': `Your grade of ${name}` }, GRADES.map((meaning, number) =>
    h('button', { type: 'button', class: 'small', title: `${number}: ${meaning}`, 'aria-label': `${number}, ${meaning}`, 'aria-pressed': String(number === grade), on: { click: () => chosen(number) } }, number)));

export const pressed = (group, grade) => [...group.children].forEach((button, number) => button.setAttribute('aria-pressed', String(number === grade)));

/** Offers a file for download. */
export const saveFile = (name, lines) => {
  const link = h('a', { download: name });
  link.href = URL.createObjectURL(new Blob(lines, { type: 'application/x-ndjson' }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
};

/** The number of grades, and buttons to save or delete them. */
export const gradeBar = (grades) => {
  const bar = h('div', { class: 'row' });
  const draw = () => {
    const { queries, grades: number } = grades.counts();
    refill(bar, h('span', { class: 'help', role: 'status' }, number ? `${number} grades on ${queries} ${queries === 1 ? 'query' : 'queries'}` : 'Grade hits with the keys 0 to 3.'),
      number > 0 && h('button', { type: 'button', class: 'small', on: { click: () => saveFile('judged.jsonl', grades.lines()) } }, 'Save as a file'),
      number > 0 && h('button', { type: 'button', class: 'small quiet', on: { click: () => { grades.clear(); draw(); document.dispatchEvent(new Event('trivet:grades')); } } }, 'Delete them'));
  };
  draw();
  return { element: bar, draw };
};
