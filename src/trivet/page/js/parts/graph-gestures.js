// Panning and zooming: the mouse or one finger pans, two fingers zoom, and so does a pinch on a touchpad, which browsers
// report as a wheel with Ctrl.

// Pixels that a resting finger may move.
const TREMBLE = 4;
const WHEEL = 0.01;

/**
 * @param {HTMLElement} element
 * @param {{pan: (x: number, y: number) => void, enlarge: (factor: number, at: {x: number, y: number}) => void, signal: AbortSignal}} acts
 *   enlarge: zooms by a factor around this point
 * @returns {{moved: boolean}} whether the picture moved since the pointer went down, so that a click is ignored
 */
export const gestures = (element, { pan, enlarge, signal }) => {
  const down = new Map();
  const state = { moved: false };
  const begin = (event) => {
    if (event.isPrimary) down.clear(); // pointers whose end was missed
    if (event.target.closest('button') || (event.pointerType === 'mouse' && event.button !== 0)) return;
    if (!down.size) state.moved = false;
    down.set(event.pointerId, pointOf(event));
  };
  const move = (event) => {
    const before = down.get(event.pointerId);
    const now = pointOf(event);
    if (!before || (!state.moved && far(before, now) < TREMBLE)) return;
    state.moved = true;
    down.set(event.pointerId, now);
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    if (other) pinch(before, now, other);
    else pan(now.x - before.x, now.y - before.y);
  };
  const pinch = (before, now, other) => {
    pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    enlarge(far(now, other) / Math.max(1, far(before, other)), within({ x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 }));
  };
  const within = ({ x, y }) => {
    const { left, top } = element.getBoundingClientRect();
    return { x: x - left, y: y - top };
  };
  const end = (event) => down.delete(event.pointerId);
  const wheel = (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault(); // else the browser zooms the page
    enlarge(Math.exp(-event.deltaY * WHEEL), within(pointOf(event)));
  };
  element.addEventListener('pointerdown', begin, { signal });
  element.addEventListener('wheel', wheel, { signal, passive: false });
  addEventListener('pointermove', move, { signal });
  for (const name of ['pointerup', 'pointercancel']) addEventListener(name, end, { signal });
  return state;
};

const pointOf = (event) => ({ x: event.clientX, y: event.clientY });
const far = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);
