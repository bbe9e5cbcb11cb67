// A link to a memory known only by id: it shows the id until the title has loaded.

import { api } from '../api.js';
import { refill } from '../dom.js';
import { memoryLink, titleOf } from './memory.js';

/** @param {string} id @param {Record<string, string>} [names] known titles by id */
export const namedLink = (id, names = {}) => {
  const link = memoryLink(id, names);
  if (!names[id]) api.get(`/v1/memories/${encodeURIComponent(id)}`).then((memory) => refill(link, titleOf(memory)), () => {});
  return link;
};
