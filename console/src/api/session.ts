/**
 * Which server is this, and with which token does the page call it? The token lives in `sessionStorage` and is sent in
 * `Authorization`: never in a cookie, never in a URL.
 */
import { useSyncExternalStore } from 'react';

export interface Environment {
  mode: 'dev' | 'serve';
  version: string;
  /** In development everybody knows the token, so nobody is asked for it. */
  token?: string;
}

const KEY = 'waypost.token';
const listeners = new Set<() => void>();
let environment: Environment = { mode: 'serve', version: '' };

export async function readEnvironment(): Promise<void> {
  const answer = await fetch('/console/environment.json');
  if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
  environment = (await answer.json()) as Environment;
}

export function environmentOf(): Environment {
  return environment;
}

export function token(): string | undefined {
  return environment.token ?? sessionStorage.getItem(KEY) ?? undefined;
}

/** `undefined` ends the session. */
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
