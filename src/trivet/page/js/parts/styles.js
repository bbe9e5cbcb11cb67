// Styles that one view alone needs, fetched with it: the first view stays small.

import { h } from '../dom.js';

const fetched = new Map();

/** @param {string} name of a file beside style.css, without .css @returns {Promise<void>} when it is in force */
export const useStyle = (name) => {
  if (!fetched.has(name)) fetched.set(name, fetchStyle(name));
  return fetched.get(name);
};

// A style that does not come leaves the view plain, but whole.
const fetchStyle = (name) =>
  new Promise((resolve) => {
    document.head.append(h('link', { rel: 'stylesheet', href: `/page/${name}.css`, on: { load: resolve, error: resolve } }));
  });
