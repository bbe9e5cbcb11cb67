// The interface of a view: a module with `show` and optionally `keys`:
//
//   /** @param {import('../view.js').Place} place */
//   export async function show(place) { ... }
//   export const keys = [{ key: 'e', does: 'Edit the memory', act: (place) => ... }];

/**
 * @typedef {object} Place
 * @property {HTMLElement} main the emptied <main>
 * @property {string} name the view's name
 * @property {string[]} path what follows the name in the address: ['ID', ...]
 * @property {URLSearchParams} query the parameters in the address, as they are now
 * @property {AbortSignal} signal aborted when the user leaves the view
 * @property {(hash: string) => void} go goes to another address: '#/memory/ID'
 * @property {(query: URLSearchParams | Record<string, any>) => void} replace changes the parameters in the address,
 *   without a history entry and without redrawing the view
 * @property {(title: string) => void} title sets the window's title
 */

import { h } from './dom.js';

/** The heading of a view, which gets the focus when the view opens. */
export const heading = (text, ...rest) => h('h1', { tabindex: '-1' }, text, ...rest);
