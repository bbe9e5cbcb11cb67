// The table of keys, and the form for new ones. A key is shown once, in a dialog, and never stored.

import { api } from '../api.js';
import { h, stored } from '../dom.js';
import { complain, say } from '../say.js';
import { confirm, dialog } from './dialog.js';
import { when } from './when.js';

const RIGHTS = ['read', 'write', 'share', 'reveal', 'admin'];
const OF_ROLE = { reader: ['read', 'reveal'], writer: ['read', 'write', 'share', 'reveal'], admin: RIGHTS };

export const keyTable = (keys, own, act) => {
  const now = Date.now();
  const good = keys.filter((key) => !key.revoked_at && !(key.expires_at && Date.parse(key.expires_at) <= now));
  return [
    h('h2', {}, 'Keys'),
    h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Keys' }, h('table', {},
      h('thead', {}, h('tr', {}, ['Key', 'User', 'Rights', 'Created', 'Expires', ''].map((text) => h('th', { scope: 'col' }, text || h('span', { class: 'unseen' }, 'Actions'))))),
      h('tbody', {}, good.map((key) => row(key, own, act))))),
    keys.length > good.length && h('p', { class: 'help' }, `${keys.length - good.length} more are expired or revoked.`),
  ];
};

const row = (key, own, act) =>
  h('tr', {},
    h('th', { scope: 'row' }, h('code', {}, key.id), ' ', stored(key.label)),
    h('td', {}, stored(key.user)),
    h('td', {}, key.rights.join(', ')),
    h('td', {}, when(key.created_at)),
    h('td', {}, key.expires_at ? when(key.expires_at) : 'never'),
    h('td', {}, key.id === own.id
      ? 'this key'
      : h('button', { type: 'button', class: 'small danger', 'aria-label': `Revoke the key ${key.id} of ${key.user}`, on: { click: () => revoke(key, act) } }, 'Revoke')));

const revoke = async (key, act) => {
  const sure = await confirm(`Revoke the key ${key.id}?`, `It belongs to ${key.user} and stops working at once.`, 'Revoke', { danger: true });
  if (sure) await act(() => api.delete(`/v1/keys/${encodeURIComponent(key.id)}`), 'The key is revoked.');
};

/** For oneself or a user without keys: another user's key would give access to their private memories. */
export const keyForm = (users, keys, own, draw) => {
  const able = users.filter((user) => user.name === own.user || !keys.some((key) => key.user === user.name));
  const user = h('select', { name: 'user', on: { change: () => offer() } }, able.map((one) => h('option', { value: one.name, selected: one.name !== own.user }, one.name)));
  const label = h('input', { name: 'label', maxlength: '200', autocomplete: 'off', placeholder: 'laptop' });
  const days = h('input', { name: 'days', type: 'number', min: '1', max: '36500', placeholder: 'never' });
  const boxes = RIGHTS.map((right) => h('input', { type: 'checkbox', name: 'rights', value: right }));
  const offer = () => {
    const { role } = able.find((one) => one.name === user.value);
    for (const box of boxes) {
      box.disabled = !OF_ROLE[role].includes(box.value) || !own.rights.includes(box.value);
      box.checked = !box.disabled && box.value !== 'reveal';
    }
  };
  const submit = async (event) => {
    event.preventDefault();
    const rights = boxes.filter((box) => box.checked).map((box) => box.value);
    try {
      const made = await api.post('/v1/keys', { user: user.value, label: label.value, rights, ...(days.value ? { days: Number(days.value) } : {}) });
      await draw();
      showOnce(made);
    } catch (error) {
      complain(error);
    }
  };
  offer();
  return h('form', { class: 'card', 'aria-label': 'Make a key', on: { submit } },
    h('div', { class: 'inline' },
      h('label', { class: 'field' }, h('span', {}, 'Key for'), user),
      h('label', { class: 'field' }, h('span', {}, 'Label'), label),
      h('label', { class: 'field' }, h('span', {}, 'Expires after days'), days)),
    h('fieldset', {}, h('legend', {}, 'Rights'), h('div', { class: 'row' }, boxes.map((box) => h('label', { class: 'check' }, box, box.value)))),
    h('div', { class: 'row apart' },
      h('p', { class: 'help' }, 'For yourself, or the first key of a new user. Other keys are made on the server.'),
      h('button', { type: 'submit', class: 'main' }, 'Make a key')));
};

const showOnce = (made) => {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(made.key);
      say('Copied.');
    } catch {
      say('Select it and copy it by hand.'); // pages without TLS cannot use the clipboard
    }
  };
  dialog(`Key of ${made.user}`, h('p', {}, 'Copy it now: it is not shown again.'), h('code', { class: 'secret', tabindex: '0', 'aria-label': 'The key' }, made.key),
    h('div', { class: 'actions' }, h('button', { type: 'button', class: 'main', on: { click: copy } }, 'Copy')));
};
