// Start of the page: colors, menu, keyboard and the view in the address.

import { api, SIGNED_OUT } from './api.js';
import { address } from './address.js';
import { h, refill, s, unseen } from './dom.js';
import { listen } from './keys.js';
import { go, menu, start } from './router.js';
import { complain } from './say.js';
import { drop, key, me, rememberPlace } from './session.js';
import { applyTheme, themeButton } from './theme.js';

const ICONS = {
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3 14 14',
  browse: 'M2.5 4h11M2.5 8h11M2.5 12h7',
  inbox: 'M2.5 9.5 4.5 3h7l2 6.5v3.5h-11zM2.5 9.5H6l1 1.5h2l1-1.5h3.5',
  graph: 'M4 4.2 8 8l4.3-3.4M8 8l.4 4.6M3.4 5a1.4 1.4 0 1 0 0-2.8 1.4 1.4 0 0 0 0 2.8zM12.6 5a1.4 1.4 0 1 0 0-2.8 1.4 1.4 0 0 0 0 2.8zM8.4 14.6a1.4 1.4 0 1 0 0-2.8 1.4 1.4 0 0 0 0 2.8z',
  compare: 'M2.5 3h4.5v10H2.5zM9 3h4.5v10H9z',
  health: 'M1.5 8.5h3L6.5 3l3 10 2-4.5h3',
  people: 'M8 7.5a2.6 2.6 0 1 0 0-5.2 2.6 2.6 0 0 0 0 5.2zM2.8 14c.5-2.9 2.4-4.4 5.2-4.4s4.7 1.5 5.2 4.4',
};

const icon = (name) =>
  s('svg', { viewBox: '0 0 16 16', width: '16', height: '16', 'aria-hidden': 'true' },
    s('path', { d: ICONS[name] ?? 'M3 8h10', fill: 'none', stroke: 'currentColor', 'stroke-width': '1.4', 'stroke-linejoin': 'round', 'stroke-linecap': 'round' }));

const showMenu = (current) => {
  const links = key() ? menu().map((view) => menuLink(view, current)) : [];
  refill(document.getElementById('views'), links);
  refill(document.getElementById('corner'), key() && whoButton(), themeButton());
};

const menuLink = ({ name, title, key: letter }, current) =>
  h('a', { href: address(name), title: `${title} (g ${letter})`, 'aria-current': name === current ? 'page' : null },
    icon(name), h('span', {}, title));

const whoButton = () => {
  const who = h('span', { class: 'who stored' });
  me(api).then(({ user }) => refill(who, user), () => {});
  return h('button', { type: 'button', class: 'quiet', on: { click: signOut } }, who, unseen(', '), 'Sign out');
};

const signOut = async () => {
  try {
    await api.delete('/v1/keys/own');
  } catch (error) {
    complain(error);
  }
  drop();
  go('#/sign-in');
};

const startPage = () => {
  applyTheme();
  document.getElementById('skip').addEventListener('click', () => document.getElementById('main').focus());
  document.addEventListener(SIGNED_OUT, () => {
    if (location.hash.startsWith('#/sign-in')) return;
    rememberPlace(location.hash);
    drop();
    go('#/sign-in');
  });
  listen(menu(), (name) => go(address(name)));
  start(showMenu);
};

startPage();
