// The memories of a listing by position, read page by page: pagesOf({...}) -> {at(index), want(first, last)}.
//
// A page after a known one continues from its last memory, which costs the same at every depth. A jump starts at the day
// that the timeline has there and skips only within that day.

import { api, isAbort } from '../api.js';
import { complain } from '../say.js';

export const PAGE = 100;
// A few thousand rows; scrolling further and back loads them again.
const MOST_PAGES = 40;
// While the scroll bar is dragged, only the rows where it stops are loaded.
const PAUSE_MS = 90;
const AT_ONCE = 2;

/**
 * @param {{filters: object, sort: string, days: {from: number, before: string | null}[], signal: AbortSignal,
 *   arrived: () => void}} options days from `daysInOrder`; arrived is called after each page
 */
export const pagesOf = ({ filters, sort, days, signal, arrived }) => {
  const pages = new Map();
  const loading = new Set();
  let wanted = [];
  let timer = 0;

  const load = async (number) => {
    loading.add(number);
    try {
      const query = { ...filters, sort, limit: PAGE, ...start(number) };
      keep(number, (await api.get('/v1/memories', query, { signal })).memories);
      arrived();
    } catch (error) {
      if (isAbort(error)) return;
      complain(error);
      wanted = []; // until the user scrolls on
    } finally {
      loading.delete(number);
    }
    loadWanted();
  };

  const start = (number) => {
    const before = pages.get(number - 1);
    if (before?.length === PAGE) return { after: before[PAGE - 1].id };
    return sort === 'recency' ? within(days, number * PAGE) : { offset: number * PAGE };
  };

  const keep = (number, memories) => {
    pages.set(number, memories);
    for (const old of pages.keys()) {
      if (pages.size <= MOST_PAGES) break;
      if (!wanted.includes(old)) pages.delete(old);
    }
  };

  const loadWanted = () => {
    for (const number of wanted) {
      if (loading.size >= AT_ONCE) return;
      if (!pages.has(number) && !loading.has(number)) load(number);
    }
  };

  return {
    /** The memory at a position; undefined while loading, null if it no longer exists. */
    at: (index) => {
      const page = pages.get(Math.floor(index / PAGE));
      return page && (page[index % PAGE] ?? null);
    },
    keep,
    want: (first, last) => {
      wanted = [];
      for (let number = Math.floor(first / PAGE); number * PAGE <= last; number += 1) wanted.push(number);
      clearTimeout(timer);
      timer = setTimeout(loadWanted, PAUSE_MS);
    },
  };
};

/** The query for a position, newest first, starting at the end of its day. */
const within = (days, index) => {
  const day = days.findLast((one) => one.from <= index);
  return day?.before ? { created_before: day.before, offset: index - day.from } : { offset: index };
};
