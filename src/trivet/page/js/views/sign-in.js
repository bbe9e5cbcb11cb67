// Sign-in, by the one-time link of `trivet open` (#/sign-in/TOKEN) or with a key.

import { api } from '../api.js';
import { h, refill } from '../dom.js';
import { complain } from '../say.js';
import { drop, keep, key, me, rememberedPlace } from '../session.js';
import { heading } from '../view.js';

/** @param {import('../view.js').Place} place */
export async function show(place) {
  const [token] = place.path;
  if (token) {
    history.replaceState(null, '', '#/sign-in'); // keeps the token out of the history
    refill(place.main, h('section', { class: 'narrow' }, heading('Signing in'), h('p', {}, 'One moment.')));
    return byLink(place, token);
  }
  return form(place);
}

const byLink = async (place, token) => {
  try {
    const { key: text } = await api.post('/page/sign-in', { token }, { signal: place.signal });
    keep(text, true);
  } catch (error) {
    if (place.signal.aborted) return;
    form(place, error.message);
    return;
  }
  enter(place);
};

const enter = (place) => place.go(rememberedPlace());

const form = (place, trouble = '') => {
  const field = h('input', { type: 'password', name: 'key', required: true, autocomplete: 'current-password', spellcheck: 'false', 'aria-describedby': 'key-help key-trouble' });
  const stays = h('input', { type: 'checkbox', name: 'stays' });
  const told = h('p', { id: 'key-trouble', class: 'wrong', role: 'alert' }, trouble);
  const submit = async (event) => {
    event.preventDefault();
    refill(told);
    keep(field.value.trim(), stays.checked);
    try {
      await me(api);
      enter(place);
    } catch (error) {
      drop();
      if (error.status === 401) refill(told, 'This key is unknown, expired or revoked.');
      else complain(error);
      field.select();
    }
  };
  refill(place.main, h('section', { class: 'narrow' },
    heading('Sign in'),
    h('form', { class: 'card', on: { submit } },
      h('label', { class: 'field' }, h('span', {}, 'Key'), field),
      h('p', { id: 'key-help', class: 'help' }, 'It starts with tvt. The person who runs the server makes one with ', h('code', {}, 'trivet key add NAME'), '.'),
      h('label', { class: 'check' }, stays, h('span', {}, 'Keep it on this computer')),
      told,
      h('div', { class: 'actions' }, h('button', { type: 'submit', class: 'main' }, 'Sign in'))),
    h('p', { class: 'help' }, 'For the memory of this computer, run ', h('code', {}, 'trivet open'), ': it opens this page signed in.'),
    key() && h('p', {}, h('a', { href: '#/search' }, 'You are already signed in. Go to search.'))));
  field.focus();
};
