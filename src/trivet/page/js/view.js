// What a view is given. A view is a module with `show`, and perhaps `keys`:
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
 * @property {AbortSignal} signal aborted when the person leaves the view
 * @property {(hash: string) => void} go goes to another address: '#/memory/ID'
 * @property {(query: URLSearchParams | Record<string, any>) => void} replace changes the parameters in the address,
 *   without a step in the history and without showing the view anew
 * @property {(title: string) => void} title says in the window's title what is shown
 */

import { h } from './dom.js';

/** The heading of a view, which gets the focus when the person comes to it. */
export const heading = (text, ...rest) => h('h1', { tabindex: '-1' }, text, ...rest);
