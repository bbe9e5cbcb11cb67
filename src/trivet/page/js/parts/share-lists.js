// What the user shares and what is shared with them, and sharing of a tag with all its memories.

import { api } from '../api.js';
import { h, stored } from '../dom.js';
import { may } from '../session.js';
import { namedLink } from './named-link.js';

const EVERYONE = '*';
const OFFERED_TAGS = 200;

/** @param {object[]} shares @param {string} own the user's name @param {Function} act acts, reports and redraws */
export const shareLists = (shares, own, act) => {
  const [mine, others] = [shares.filter((one) => one.owner === own), shares.filter((one) => one.owner !== own)];
  return [
    h('h2', {}, 'Shared by you'), list(mine, (share) => [stored(whom(share)), allowed(share), what(share)], 'You share nothing.', act),
    may('share') && tagForm(act),
    h('h2', {}, 'Shared with you'), list(others, (share) => [stored(share.owner), ' lets ', share.user === EVERYONE ? 'everyone' : 'you', allowed(share, ''), what(share)], 'Nothing is shared with you.'),
  ];
};

const whom = ({ user }) => (user === EVERYONE ? 'everyone' : user);
const allowed = ({ permission }, word = ' may') => `${word} ${permission === 'write' ? 'read and edit' : 'read'} `;
const what = (share) => (share.tag ? ['all with the tag ', h('span', { class: 'tag' }, stored(share.tag))] : namedLink(share.id));

const list = (shares, words, empty, act) =>
  (shares.length === 0
    ? h('p', { class: 'help' }, empty)
    : h('ul', { class: 'list shares' }, shares.map((share) => h('li', { class: 'row apart', 'data-item': true, tabindex: '-1' }, h('span', {}, words(share)),
      act && may('share') && h('button', { type: 'button', class: 'small', 'aria-label': `Stop sharing with ${whom(share)}`, on: { click: () => takeBack(share, act) } }, 'Stop sharing')))));

const named = ({ user, id, tag }) => ({ user, ...(tag ? { tag } : { id }) });

const takeBack = (share, act) =>
  act(() => api.delete('/v1/shares', named(share)), 'No longer shared.', () => api.post('/v1/shares', { ...named(share), permission: share.permission }));

const tagForm = (act) => {
  const tag = h('input', { name: 'tag', required: true, maxlength: '64', autocomplete: 'off', list: 'own-tags' });
  const user = h('input', { name: 'user', required: true, maxlength: '64', autocomplete: 'off', placeholder: 'a user, or * for everyone' });
  const permission = h('select', { name: 'permission' }, h('option', { value: 'read' }, 'read'), h('option', { value: 'write' }, 'read and edit'));
  const offers = h('datalist', { id: 'own-tags' });
  api.get('/v1/tags', { limit: OFFERED_TAGS }).then((tags) => offers.append(...tags.map((one) => h('option', { value: one.name }))), () => {});
  const submit = (event) => {
    event.preventDefault();
    const asked = { user: user.value.trim(), tag: tag.value.trim(), permission: permission.value };
    act(() => api.post('/v1/shares', asked), 'Shared, including future memories with the tag.', () => api.delete('/v1/shares', named(asked)));
  };
  const field = (label, control) => h('label', { class: 'field' }, h('span', {}, label), control);
  return h('form', { class: 'inline card', 'aria-label': 'Share a tag', on: { submit } },
    field('All your memories with the tag', tag), offers, field('for', user), field('to', permission), h('button', { type: 'submit' }, 'Share'));
};
