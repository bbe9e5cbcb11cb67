// Keyboard shortcuts. Everywhere: / goes to search, g and a letter to a view, j and k to the next and previous item,
// Enter opens it, ? shows the list. A view adds its own: export const keys = [{key: 'e', does: '...', act: (place) => ...}].
//
// An item is any element with data-item (and tabindex="-1"); Enter opens the link or button with data-open in it.
// Keys do nothing in a field, in a dialog, or with ctrl, alt or meta.

import { dialog } from './parts/dialog.js';
import { h } from './dom.js';

const GO_MS = 1_500;
let place = null;
let own = [];
let going = 0;

/** Called by the router for every view. */
export const useKeys = (current, keys = []) => {
  place = current;
  own = keys;
};

/** @param {{name: string, key: string, title: string}[]} views @param {(name: string) => void} go */
export const listen = (views, go) => {
  document.addEventListener('keydown', (event) => {
    if (isTyping(event) || event.ctrlKey || event.altKey || event.metaKey) return;
    const act = going && Date.now() < going ? goTo(views, go, event.key) : common(event, views, go) ?? ofView(event);
    going = act === startGoing ? going : 0;
    if (!act) return;
    event.preventDefault();
    act();
  });
};

const isTyping = (event) =>
  event.isComposing || event.defaultPrevented || document.activeElement?.closest('input, textarea, select, dialog, [contenteditable]');

const goTo = (views, go, key) => {
  const view = views.find((one) => one.key === key);
  return view && (() => go(view.name));
};

const startGoing = () => {
  going = Date.now() + GO_MS;
};

const common = (event, views, go) => {
  if (event.key === 'g') {
    startGoing();
    return startGoing;
  }
  if (event.key === '/') return () => focusSearch(go);
  if (event.key === '?') return () => help(views);
  if (event.key === 'j') return () => move(1);
  if (event.key === 'k') return () => move(-1);
  if (event.key === 'Enter' && document.activeElement?.matches('[data-item]')) return () => open(document.activeElement);
  return undefined;
};

const ofView = (event) => {
  const found = own.find((one) => one.key === event.key);
  return found && (() => found.act(place));
};

const focusSearch = (go) => {
  const field = document.querySelector('main [data-search]');
  if (field) field.focus();
  else go('search');
};

/** The item that has or contains the focus. */
export const currentItem = () => document.activeElement?.closest('[data-item]') ?? null;

const move = (step) => {
  const items = [...document.querySelectorAll('main [data-item]')].filter((item) => item.offsetParent !== null);
  const at = items.indexOf(currentItem());
  const next = items[at < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(Math.max(at + step, 0), items.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
};

const open = (item) => item.querySelector('[data-open]')?.click();

const help = (views) => {
  const rows = [
    ['/', 'Search'],
    ['j  k', 'Next or previous item'],
    ['Enter', 'Open the item'],
    ...views.map((view) => [`g ${view.key}`, view.title]),
    ...own.map((one) => [one.key, one.does]),
    ['?', 'Show this list'],
  ];
  const list = rows.map(([keys, does]) => [h('dt', {}, keys.split(/ +/).map((one) => h('kbd', {}, one))), h('dd', {}, does)]);
  dialog('Keyboard shortcuts', h('dl', { class: 'keys' }, list));
};
