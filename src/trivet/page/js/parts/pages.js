// The memories of a listing by their place in it, read a page at a time: pagesOf({...}) -> {at(index), want(first, last)}.
//
// A page after one that is known goes on from its last memory, which costs the server the same at every depth. A jump
// into the middle begins at the day that the time line has there, and skips within that day alone.

import { api, isAbort } from '../api.js';
import { complain } from '../say.js';

export const PAGE = 100;
// Some thousand rows; whoever scrolls further and back asks again.
const MOST_PAGES = 40;
// While somebody drags the scroll bar: what they stop at is asked for, and not all that flies by.
const PAUSE_MS = 90;
const AT_ONCE = 2;

/**
 * @param {{filters: object, sort: string, days: {from: number, before: string | null}[], signal: AbortSignal,
 *   arrived: () => void}} options days as `daysInOrder` gives them; arrived is called after each page
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
      wanted = []; // until the person scrolls on
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
    /** The memory at a place; undefined while it is not here, null where there is none any longer. */
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

/** How to ask for what is at a place, newest first: from the end of the day that it is in. */
const within = (days, index) => {
  const day = days.findLast((one) => one.from <= index);
  return day?.before ? { created_before: day.before, offset: index - day.from } : { offset: index };
};
