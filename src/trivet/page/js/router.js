// The views by address, each loaded on first use. `key` is a view's letter after g; a view without a key is not in the
// menu and is reached by links.

import { isAbort } from './api.js';
import { address, parameters, parsed } from './address.js';
import { refill } from './dom.js';
import { useKeys } from './keys.js';
import { complain } from './say.js';
import { key, rememberPlace } from './session.js';

export const VIEWS = {
  search: { title: 'Search', key: 's', load: () => import('./views/search.js') },
  browse: { title: 'Browse', key: 'b', load: () => import('./views/browse.js') },
  inbox: { title: 'Inbox', key: 'i', load: () => import('./views/inbox.js') },
  memory: { title: 'Memory', load: () => import('./views/memory.js') },
  graph: { title: 'Graph', key: 'g', load: () => import('./views/graph.js') },
  compare: { title: 'Compare', key: 'c', load: () => import('./views/compare.js') },
  health: { title: 'Health', key: 'h', load: () => import('./views/health.js') },
  people: { title: 'People', load: () => import('./views/people.js') },
  'sign-in': { title: 'Sign in', open: true, load: () => import('./views/sign-in.js') },
};

export const menu = () =>
  Object.entries(VIEWS).filter(([, view]) => view.key).map(([name, view]) => ({ name, key: view.key, title: view.title }));

/** Called with the name of the view on every change. */
let shown = () => {};
let leaving = new AbortController();

export const start = (listener) => {
  shown = listener;
  addEventListener('hashchange', () => route(true));
  return route(false);
};

export const go = (hash) => {
  if (location.hash === hash) route(true);
  else location.hash = hash;
};

const route = async (moved) => {
  const at = parsed(location.hash);
  const name = Object.hasOwn(VIEWS, at.name) ? at.name : 'search';
  if (!key() && !VIEWS[name].open) {
    if (at.name) rememberPlace(location.hash);
    history.replaceState(null, '', address('sign-in'));
    return route(moved);
  }
  leaving.abort();
  leaving = new AbortController();
  await display(name, at, leaving.signal, moved);
};

const display = async (name, at, signal, moved) => {
  try {
    const view = await VIEWS[name].load();
    if (signal.aborted) return;
    const place = placeOf(name, at, signal);
    place.title(VIEWS[name].title);
    useKeys(place, view.keys);
    shown(name);
    refill(place.main);
    const done = view.show(place);
    if (moved) focusHeading(place.main);
    await done;
  } catch (error) {
    if (!isAbort(error) && !signal.aborted) complain(error);
  }
};

/** @returns {import('./view.js').Place} */
const placeOf = (name, at, signal) => ({
  main: document.getElementById('main'),
  name,
  path: at.path,
  query: at.query,
  signal,
  go,
  replace(query) {
    this.query = query instanceof URLSearchParams ? query : parameters(query);
    history.replaceState(null, '', address(name, at.path, this.query));
  },
  title: (text) => {
    document.title = `${text} · Trivet`;
  },
});

/** Focuses the heading unless the view has set the focus. */
const focusHeading = (main) => {
  if (main.contains(document.activeElement) && document.activeElement !== main) return;
  (main.querySelector('h1') ?? main).focus({ preventScroll: true });
  scrollTo(0, 0);
};
