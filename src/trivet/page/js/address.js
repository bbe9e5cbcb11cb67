// The address of a view is the fragment, which browsers never send to a server: #/NAME/PATH...?QUERY. Parameters have
// the API's names, and lists are repeated.

/** @typedef {{name: string, path: string[], query: URLSearchParams}} Address */

/** @returns {Address} */
export const parsed = (hash) => {
  const [path, query = ''] = divided(hash.replace(/^#\/?/, ''));
  const [name = '', ...rest] = path.split('/').map(decoded);
  return { name, path: rest.filter((part) => part !== ''), query: new URLSearchParams(query) };
};

/** @param {string} name @param {string[]} [path] @param {URLSearchParams | Record<string, any>} [query] */
export const address = (name, path = [], query = {}) => {
  const asked = query instanceof URLSearchParams ? query : parameters(query);
  const text = asked.toString();
  return `#/${[name, ...path].map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
};

/** {tags: ['a', 'b'], scope: 'x', state: []} -> tags=a&tags=b&scope=x; empty values are left out. */
export const parameters = (values) => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== '') query.append(name, String(one));
    }
  }
  return query;
};

const divided = (text) => {
  const mark = text.indexOf('?');
  return mark < 0 ? [text] : [text.slice(0, mark), text.slice(mark + 1)];
};

const decoded = (part) => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand
  }
};
