// Styles that only some views need, loaded with them to keep the first view small.

import { h } from '../dom.js';

const fetched = new Map();

/** @param {string} name of a file next to style.css, without .css @returns {Promise<void>} when it is loaded */
export const useStyle = (name) => {
  if (!fetched.has(name)) fetched.set(name, fetchStyle(name));
  return fetched.get(name);
};

// Without its style, a view is plain but complete.
const fetchStyle = (name) =>
  new Promise((resolve) => {
    document.head.append(h('link', { rel: 'stylesheet', href: `/page/${name}.css`, on: { load: resolve, error: resolve } }));
  });
