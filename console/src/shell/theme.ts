/** Light, dark or the system's theme, stored in this browser. */
export type Theme = 'system' | 'light' | 'dark';

const KEY = 'waypost.theme';

export function currentTheme(): Theme {
  const stored = localStorage.getItem(KEY);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

export function setTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  applyTheme();
}

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = currentTheme();
}
