// The key that the page sends, and its owner. A key is kept for this tab, or on this computer if the user wants it. A
// cookie would go to every program on other ports of this machine.

const NAME = 'trivet.key';
const PLACE = 'trivet.place';
let known = null;

export const key = () => sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME);

/** @param {string} text @param {boolean} stays on this computer, after the tab is closed */
export const keep = (text, stays) => {
  drop();
  (stays ? localStorage : sessionStorage).setItem(NAME, text);
};

export const drop = () => {
  known = null;
  sessionStorage.removeItem(NAME);
  localStorage.removeItem(NAME);
};

/** The key's owner and rights: {user, rights, expires_at, ...}. Requested once. */
export const me = async (api) => (known ??= await api.get('/v1/keys/own'));

/** Whether the key has the right, as far as known; a view that must be sure awaits `me`. */
export const may = (right) => known?.rights.includes(right) ?? false;

/** The address at which the key expired, to return to after signing in. */
export const rememberPlace = (hash) => sessionStorage.setItem(PLACE, hash);
export const rememberedPlace = () => {
  const hash = sessionStorage.getItem(PLACE);
  sessionStorage.removeItem(PLACE);
  return hash ?? '#/search';
};
