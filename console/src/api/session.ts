/**
 * The server's environment, and the token of the session. The token is kept in `sessionStorage` and sent in
 * `Authorization`, never in a cookie or a URL.
 */
import { useSyncExternalStore } from 'react';

export interface Environment {
  mode: 'dev' | 'serve';
  version: string;
  /** The development server has a well-known token, so there is no login. */
  token?: string;
  /** The documentation site, if there is one. */
  docsUrl?: string;
}

const KEY = 'waypost.token';
const listeners = new Set<() => void>();
let environment: Environment = { mode: 'serve', version: '' };

export async function readEnvironment(): Promise<void> {
  const response = await fetch('/console/environment.json');
  if (!response.ok) throw new Error(`the server responded with ${response.status}`);
  environment = (await response.json()) as Environment;
}

export function environmentOf(): Environment {
  return environment;
}

export function token(): string | undefined {
  return environment.token ?? sessionStorage.getItem(KEY) ?? undefined;
}

/** Sets the token of the session. `undefined` ends the session. */
export function setToken(value: string | undefined): void {
  if (value === undefined) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, value);
  for (const listener of listeners) listener();
}

export function useToken(): string | undefined {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, token);
}
