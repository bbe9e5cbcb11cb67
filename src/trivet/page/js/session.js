// The key that the page sends, and whose it is. A key is kept for this tab, or on this computer if the person wants it;
// a cookie would go to every program that listens on another port of this machine.

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

/** Whose key it is and what it allows: {user, rights, expires_at, ...}. Asked for once. */
export const me = async (api) => (known ??= await api.get('/v1/keys/own'));

/** What the key allows as far as it is known by now; a view that needs it sure awaits `me`. */
export const may = (right) => known?.rights.includes(right) ?? false;

/** Where the person was when their key ended, to go on from there. */
export const rememberPlace = (hash) => sessionStorage.setItem(PLACE, hash);
export const rememberedPlace = () => {
  const hash = sessionStorage.getItem(PLACE);
  sessionStorage.removeItem(PLACE);
  return hash ?? '#/search';
};
