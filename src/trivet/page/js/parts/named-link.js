// A link to a memory that an answer names by its id alone: it shows the id until its title has come, or where it never does.

import { api } from '../api.js';
import { refill } from '../dom.js';
import { memoryLink, titleOf } from './memory.js';

/** @param {string} id @param {Record<string, string>} [names] those that are known already, by id */
export const namedLink = (id, names = {}) => {
  const link = memoryLink(id, names);
  if (!names[id]) api.get(`/v1/memories/${encodeURIComponent(id)}`).then((memory) => refill(link, titleOf(memory)), () => {});
  return link;
};
