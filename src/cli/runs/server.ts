/** Asks a server about its runs over HTTP, like any client, so that commands work from any machine. */
import { DEVELOPMENT_ACCOUNTS } from '../../config/development.ts';
import type { Environment } from '../../config/parse.ts';
import { CommandFailed, EXIT, takeValue } from '../command.ts';

const DEFAULT_URL = 'http://127.0.0.1:8080';

export interface Server {
  /**
   * `path`: path and query after the server's address. Returns the parsed answer; throws `CommandFailed` with the
   * server's text.
   */
  ask<T>(method: 'GET' | 'POST' | 'DELETE', path: string): Promise<T>;
}

/**
 * The server named by the options or the environment; `rest` is the rest of the command line. Throws `CommandFailed`.
 */
export function serverOf(args: readonly string[], env: Environment): { server: Server; rest: string[] } {
  const { value: givenUrl, rest: afterUrl } = takeValue(args, '--url');
  const { value: givenToken, rest } = takeValue(afterUrl, '--token');
  const url = givenUrl ?? env['QSTASH_URL'] ?? DEFAULT_URL;
  const token = givenToken ?? env['QSTASH_TOKEN'] ?? DEVELOPMENT_ACCOUNTS[0].token;
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    throw new CommandFailed(`--url: an http or https address is needed, not ${JSON.stringify(url)}`, EXIT.usage);
  }
  const base = url.replace(/\/+$/, '');
  return { server: { ask: (method, path) => ask(base, token, method, path) }, rest };
}

async function ask<T>(base: string, token: string, method: string, path: string): Promise<T> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(`${base}${path}`, { method, headers: { authorization: `Bearer ${token}` } });
    text = await response.text();
  } catch (error) {
    // The error's cause names the address; its own text says only that something failed.
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
    throw new CommandFailed(`no server answers at ${base}: ${cause}`);
  }
  const answer = text === '' ? undefined : parsed(text, base);
  if (response.ok) return answer as T;
  const said = (answer as { error?: unknown } | undefined)?.error;
  throw new CommandFailed(typeof said === 'string' ? said : `the server answered with status ${response.status}`);
}

function parsed(text: string, base: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandFailed(`what answers at ${base} is no Waypost server`);
  }
}
