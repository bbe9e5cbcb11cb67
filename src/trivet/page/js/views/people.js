// Users, keys and shares. An admin manages the tenant's users and keys; all users manage what they share.

import { api } from '../api.js';
import { h, refill, stored } from '../dom.js';
import { keyForm, keyTable } from '../parts/people-keys.js';
import { confirm } from '../parts/dialog.js';
import { shareLists } from '../parts/share-lists.js';
import { useStyle } from '../parts/styles.js';
import { when } from '../parts/when.js';
import { complain, say } from '../say.js';
import { may, me } from '../session.js';
import { heading } from '../view.js';

const ROLES = ['reader', 'writer', 'admin'];

/** @param {import('../view.js').Place} place */
export async function show(place) {
  const parts = { users: h('section', { class: 'stack' }), keys: h('section', { class: 'stack' }), shares: h('section', { class: 'stack' }) };
  refill(place.main, h('div', { class: 'stack' }, heading('People'), parts.users, parts.keys, parts.shares));
  const [own] = await Promise.all([me(api), useStyle('tools')]);
  const draw = () => drawAll(place, parts, own, draw).catch(complain);
  await draw();
}

const drawAll = async ({ signal }, parts, own, draw) => {
  const act = acting(draw);
  refill(parts.shares, shareLists(await api.get('/v1/shares', {}, { signal }), own.user, act));
  if (!may('admin')) {
    refill(parts.users, h('p', { class: 'note' }, 'Only an admin can manage users and keys. Below is what you share and what is shared with you.'));
    return;
  }
  const [users, keys] = await Promise.all([api.get('/v1/users', {}, { signal }), api.get('/v1/keys', {}, { signal })]);
  refill(parts.users, userTable(users, keys, own.user, act), userForm(act));
  refill(parts.keys, keyTable(keys, own, act), keyForm(users, keys, own, draw));
};

/** Acts, reports the result with an undo if possible, and redraws. */
const acting = (draw) => async (does, said, undo) => {
  try {
    await does();
    say(said, { undo: undo && (async () => { await undo(); await draw(); }) });
  } catch (error) {
    complain(error);
  }
  await draw();
};

const userTable = (users, keys, own, act) => [
  h('h2', {}, 'Users'),
  h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Users' }, h('table', {},
    h('thead', {}, h('tr', {}, ['Name', 'Role', 'Since', 'Keys', ''].map((text) => h('th', { scope: 'col' }, text || h('span', { class: 'unseen' }, 'Actions'))))),
    h('tbody', {}, users.map((user) => h('tr', {},
      h('th', { scope: 'row' }, stored(user.name)),
      h('td', {}, user.name === own ? `${user.role} (you)` : roleChoice(user, act)),
      h('td', {}, when(user.created_at)),
      h('td', {}, keys.filter((key) => key.user === user.name && !key.revoked_at).length),
      h('td', {}, user.name !== own && h('button', { type: 'button', class: 'small danger', 'aria-label': `Remove ${user.name}`, on: { click: () => remove(user, act) } }, 'Remove'))))))),
];

const roleChoice = (user, act) => {
  const select = h('select', { 'aria-label': `Role of ${user.name}`, on: { change: () => act(() => api.put(userPath(user.name, '/role'), { role: select.value }), `${user.name} is now a ${select.value}.`) } },
    ROLES.map((role) => h('option', { value: role, selected: role === user.role }, role)));
  return select;
};

const userPath = (name, rest = '') => `/v1/users/${encodeURIComponent(name)}${rest}`;

const remove = async (user, act) => {
  const sure = await confirm(`Remove ${user.name}?`, 'Their keys stop working and shares with them end. Their memories stay.', 'Remove', { danger: true });
  if (sure) await act(() => api.delete(userPath(user.name)), `${user.name} was removed.`);
};

const userForm = (act) => {
  const name = h('input', { name: 'name', required: true, maxlength: '64', pattern: '[a-z0-9][a-z0-9._@\\-]*', autocomplete: 'off', title: 'Lower-case letters, digits and . _ @ -' });
  const role = h('select', { name: 'role' }, ROLES.map((one) => h('option', { value: one, selected: one === 'writer' }, one)));
  const submit = (event) => {
    event.preventDefault();
    act(() => api.post('/v1/users', { name: name.value, role: role.value }), `${name.value} was added. Now make a key for them.`);
  };
  return h('form', { class: 'inline card', 'aria-label': 'Add a user', on: { submit } },
    h('label', { class: 'field' }, h('span', {}, 'New user'), name), h('label', { class: 'field' }, h('span', {}, 'Role'), role),
    h('button', { type: 'submit' }, 'Add'));
};
