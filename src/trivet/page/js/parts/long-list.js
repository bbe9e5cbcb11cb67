// A list that keeps only visible rows in the document, so that 100,000 scroll like ten.
// All rows have the height --row of the style sheet. longList({...}) -> {element, draw, scrollTo}.

import { h } from '../dom.js';

// Rows drawn above and below the visible ones, for the keys j and k and the mouse wheel.
const BEYOND = 8;
// Firefox lays out nothing taller than 17.8 million pixels; other browsers allow more.
const TALLEST = 15_000_000;

/**
 * @param {{label: string, total: number, pages: {at: (index: number) => any, want: (first: number, last: number) => void},
 *   row: (item: any) => HTMLElement, moved: (first: number) => void, signal: AbortSignal}} options
 */
export const longList = ({ label, total, pages, row, moved, signal }) => {
  const element = h('ul', { class: 'long-list', role: 'list', 'aria-label': label });
  const rows = new Map();
  let frame = 0;

  const draw = () => {
    frame = 0;
    const height = rowHeight(element);
    const count = Math.min(total, Math.floor(TALLEST / height));
    element.style.setProperty('--rows', String(count));
    const { top, first, last } = inSight(element, height, count);
    for (const [index, old] of rows) {
      if (index < first || index > last) {
        old.remove();
        rows.delete(index);
      }
    }
    // Backward, as each row is inserted before the next one.
    for (let index = last, next = null; index >= first; index -= 1) next = put(index, next);
    pages.want(first, last);
    moved(top);
  };

  const put = (index, next) => {
    const item = pages.at(index);
    const old = rows.get(index);
    if (old && (old.dataset.waits === undefined || item === undefined)) return old;
    const made = placed(item === undefined ? waiting() : item === null ? gone() : row(item), index, total);
    if (old) old.replaceWith(made);
    else element.insertBefore(made, next);
    rows.set(index, made);
    return made;
  };

  const soon = () => {
    frame ||= requestAnimationFrame(draw);
  };
  addEventListener('scroll', soon, { passive: true, signal });
  addEventListener('resize', soon, { signal });
  signal.addEventListener('abort', () => cancelAnimationFrame(frame));
  return { element, draw, scrollTo: (index) => scrollToRow(element, index) };
};

const rowHeight = (element) => parseFloat(getComputedStyle(element).getPropertyValue('--row')) || 64;

const inSight = (element, height, count) => {
  const above = -element.getBoundingClientRect().top;
  const top = Math.min(Math.max(Math.floor(above / height), 0), Math.max(count - 1, 0));
  const first = Math.max(top - BEYOND, 0);
  const last = Math.min(Math.ceil((above + innerHeight) / height) + BEYOND, count - 1);
  return { top, first, last };
};

/** Scrolls to below the fixed top bar. */
const scrollToRow = (element, index) => {
  const bar = document.querySelector('.top')?.offsetHeight ?? 0;
  scrollTo(0, scrollY + element.getBoundingClientRect().top + index * rowHeight(element) - bar);
};

const placed = (row, index, total) => {
  row.style.setProperty('--at', String(index));
  row.setAttribute('aria-posinset', String(index + 1));
  row.setAttribute('aria-setsize', String(total));
  return row;
};

const waiting = () => h('li', { class: 'waits', 'data-waits': true }, h('span', { class: 'unseen' }, 'Loading'));
const gone = () => h('li', { class: 'help' }, 'No longer in this list.');
