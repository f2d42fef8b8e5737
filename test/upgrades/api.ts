/** The HTTP interface of a server, with the token of the first development account. */
import { DEVELOPMENT_ACCOUNTS } from '../../src/config/development.ts';

// biome-ignore lint/suspicious/noExplicitAny: who asks knows what is answered, and asserts it
export type Json = any;

export interface Request {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

/** Answers what a 2xx says. Throws at every other. */
export async function ask(
  url: string,
  path: string,
  { method = 'POST', headers = {}, body }: Request = {},
): Promise<Json> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${DEVELOPMENT_ACCOUNTS[0].token}`, ...headers },
    ...(body !== undefined && { body }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}
