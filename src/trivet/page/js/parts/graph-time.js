// The time slider: what was true on a day, from the oldest memory to now.

import { api } from '../api.js';
import { h, refill } from '../dom.js';

const DAY_MS = 86_400_000;
const PAUSE_MS = 120;

/** @param {import('../view.js').Place} place @param {(as_of: string | null) => void} changed */
export const timeSlider = (place, changed) => {
  let timer = 0;
  let first = null;
  const said = h('output', { class: 'help' });
  const slider = h('input', { type: 'range', name: 'as_of', min: '0', max: '0', value: '0', disabled: true, on: { input: () => moved() } });
  const day = (at) => new Date(first + at * DAY_MS).toISOString().slice(0, 10);
  const tell = () => {
    const at = Number(slider.value);
    const text = first === null || at >= Number(slider.max) ? 'now' : day(at);
    slider.setAttribute('aria-valuetext', text);
    refill(said, text);
  };
  const moved = () => {
    tell();
    clearTimeout(timer);
    timer = setTimeout(() => changed(Number(slider.value) >= Number(slider.max) ? null : day(Number(slider.value))), PAUSE_MS);
  };
  const fill = async () => {
    first = await oldest(place);
    if (first === null) return;
    slider.max = String(Math.ceil((Date.now() - first) / DAY_MS));
    const asked = Date.parse(place.query.get('as_of') ?? '');
    slider.value = Number.isNaN(asked) ? slider.max : String(Math.round((asked - first) / DAY_MS));
    slider.disabled = false;
    tell();
  };
  place.signal.addEventListener('abort', () => clearTimeout(timer));
  tell();
  return { element: h('label', { class: 'field time' }, h('span', {}, 'As it was on'), h('span', { class: 'slide' }, slider, said)), fill };
};

/** The day of the oldest memory, or null if there is none. */
const oldest = async ({ signal }) => {
  const { total } = await api.get('/v1/memories', { limit: 1 }, { signal });
  if (!total) return null;
  const { memories } = await api.get('/v1/memories', { limit: 1, offset: total - 1 }, { signal });
  return memories.length ? Math.floor(Date.parse(memories[0].created_at) / DAY_MS) * DAY_MS : null;
};
