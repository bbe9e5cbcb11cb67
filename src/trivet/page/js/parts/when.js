// Relative times: when('2026-11-03T09:30:00Z') -> <time datetime title>3 days ago</time>.

import { h } from '../dom.js';

const STEPS = [['minute', 60], ['hour', 3_600], ['day', 86_400]];
const DAYS_AS_WORDS = 7;
const exactly = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'medium' });
const words = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

export const when = (text, now = new Date()) => {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return h('span', {}, String(text));
  return h('time', { datetime: text, title: exactly.format(time) }, said(time, now));
};

/** 'just now', '5 minutes ago', 'yesterday', '3 Nov', '3 Nov 2025' */
export const said = (time, now = new Date()) => {
  const seconds = (time - now) / 1000;
  const far = Math.abs(seconds);
  if (far < 45) return 'just now';
  if (far > DAYS_AS_WORDS * 86_400) return day(time, now);
  const [unit, size] = STEPS.findLast(([, length]) => far >= length * 0.75);
  return words.format(Math.round(seconds / size), unit);
};

/** '3 Nov', with the year if it is not the current one. */
export const day = (time, now = new Date()) =>
  time.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', ...(time.getFullYear() === now.getFullYear() ? {} : { year: 'numeric' }) });
