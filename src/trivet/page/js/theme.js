// The theme: light, dark or that of the system. The choice is kept on this computer.

import { h, s } from './dom.js';

const NAME = 'trivet.theme';
const NEXT = { system: 'light', light: 'dark', dark: 'system' };

export const applyTheme = (theme = localStorage.getItem(NAME) ?? 'system') => {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
};

export const themeButton = () => {
  const button = h('button', { type: 'button', class: 'quiet icon', on: { click: () => turn(button) } }, halfMoon());
  tell(button);
  return button;
};

const turn = (button) => {
  const theme = NEXT[localStorage.getItem(NAME) ?? 'system'];
  localStorage.setItem(NAME, theme);
  applyTheme(theme);
  tell(button);
};

const tell = (button) => {
  const theme = localStorage.getItem(NAME) ?? 'system';
  button.setAttribute('aria-label', `Colors: ${theme}. Change to ${NEXT[theme]}`);
  button.title = `Colors: ${theme}`;
};

const halfMoon = () =>
  s('svg', { viewBox: '0 0 16 16', width: '16', height: '16', 'aria-hidden': 'true' },
    s('circle', { cx: '8', cy: '8', r: '6', fill: 'none', stroke: 'currentColor', 'stroke-width': '1.5' }),
    s('path', { d: 'M8 2a6 6 0 0 1 0 12z', fill: 'currentColor' }));
