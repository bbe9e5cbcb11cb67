// Element builder: h('p', {class: 'note'}, 'text', node). Strings always become text nodes, so stored text can never
// become markup.
//
// Properties: class, on: {click: ...}, style: {'--part': '40%'} (set through the object model, as the content security
// policy requires), value/checked/... as properties, others as attributes; true is an empty attribute, and false, null and
// undefined leave it out. Children may be nodes, strings, numbers, lists of these, or nothing (null, false).

const SVG = 'http://www.w3.org/2000/svg';
const LIVE = new Set(['value', 'checked', 'selected', 'disabled', 'indeterminate']);
// Links may lead within the page, to this server or to the web, but never to javascript: or data:.
const SAFE_LINK = /^(#|\/(?!\/)|https?:\/\/)/i;

export const h = (tag, properties, ...children) => filled(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => filled(document.createElementNS(SVG, tag), properties, children);

/** Replaces the element's children. */
export const refill = (element, ...children) => {
  element.replaceChildren(...nodes(children));
  return element;
};

/** Text for screen readers only. */
export const unseen = (text) => h('span', { class: 'unseen' }, text);

/** A short stored text within a line, whose direction cannot change that of the text around it. */
export const stored = (text) => h('bdi', { class: 'stored' }, text);

const filled = (element, properties, children) => {
  for (const [name, value] of Object.entries(properties ?? {})) set(element, name, value);
  element.append(...nodes(children));
  return element;
};

const nodes = (children) =>
  children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));

const set = (element, name, value) => {
  if (name === 'on') {
    for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
  } else if (name === 'style') {
    for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
  } else if (LIVE.has(name)) {
    element[name] = value;
  } else if (value === false || value === null || value === undefined || /^on/i.test(name)) {
    return;
  } else if (name !== 'href' || SAFE_LINK.test(value)) {
    element.setAttribute(name, value === true ? '' : String(value));
  }
};
