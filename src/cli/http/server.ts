/** Asks a server over HTTP, like any client, so that commands work from any machine. */
import { DEVELOPMENT_ACCOUNTS } from '../../config/development.ts';
import type { Environment } from '../../config/parse.ts';
import { CommandFailed, EXIT } from '../command.ts';
import { plain } from '../plain.ts';
import { operationOf, pathOf } from './operations.ts';

const DEFAULT_URL = 'http://127.0.0.1:8080';

/** What a request holds besides its operation. */
export interface Asked {
  /** What stands in the path, in its order. */
  words?: readonly string[];
  query?: URLSearchParams;
  headers?: readonly (readonly [string, string])[];
  body?: string | Uint8Array<ArrayBuffer>;
  /** A value that is sent as JSON. */
  json?: unknown;
}

/** Each method throws `CommandFailed` with the server's own text. */
export interface Server {
  url: string;
  /** The answer of an operation, parsed; `undefined` where it has no body. */
  ask<T>(operationId: string, asked?: Asked): Promise<T>;
  /** The answer as it comes in. */
  read(operationId: string): Promise<ReadableStream<Uint8Array>>;
}

/** `given`: what the options name, which wins over the environment. */
export function serverOf(given: { server?: string | undefined; token?: string | undefined }, env: Environment): Server {
  const named = given.server ?? (env['QSTASH_URL'] || undefined);
  const token = given.token ?? (env['QSTASH_TOKEN'] || undefined);
  const url = (named ?? DEFAULT_URL).replace(/\/+$/, '');
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    const origin = given.server === undefined ? 'QSTASH_URL' : '--server';
    throw new CommandFailed(`${origin}: an http or https address is needed, not ${JSON.stringify(url)}`, EXIT.usage);
  }

  async function send(operationId: string, { words = [], query, headers = [], body, json }: Asked): Promise<Response> {
    const operation = operationOf(operationId);
    const search = query === undefined || query.size === 0 ? '' : `?${query}`;
    const sent = new Headers(headers.map(([name, value]): [string, string] => [name, value]));
    sent.set('authorization', `Bearer ${token ?? DEVELOPMENT_ACCOUNTS[0].token}`);
    if (json !== undefined) sent.set('content-type', 'application/json');
    const content = json === undefined ? body : JSON.stringify(json);
    let response: Response;
    try {
      response = await fetch(`${url}${pathOf(operation, words)}${search}`, {
        method: operation.method,
        headers: sent,
        ...(content !== undefined && { body: content }),
      });
    } catch (error) {
      const advice = named === undefined ? '; set QSTASH_URL and QSTASH_TOKEN, or start one with "waypost dev"' : '';
      throw new CommandFailed(`no server answers at ${url}: ${causeOf(error)}${advice}`, EXIT.unavailable);
    }
    if (response.ok) return response;
    const said = (parsed(await response.text(), url) as { error?: unknown } | undefined)?.error;
    const text = typeof said === 'string' ? plain(said) : `the server answered with status ${response.status}`;
    const advice = response.status === 401 && token === undefined ? '; set QSTASH_TOKEN' : '';
    throw new CommandFailed(`${text}${advice}`, exitCodeOf(response.status));
  }

  return {
    url,
    ask: async <T>(operationId: string, asked: Asked = {}) =>
      parsed(await (await send(operationId, asked)).text(), url) as T,
    read: async (operationId) => {
      const { body } = await send(operationId, {});
      if (body === null) throw new CommandFailed(`what answers at ${url} is no Waypost server`);
      return body;
    },
  };
}

/** The error's cause names the address; its own text says only that something failed. */
function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

function exitCodeOf(status: number): number {
  if (status === 404) return EXIT.notFound;
  if (status === 401 || status === 403) return EXIT.denied;
  return status === 429 || status >= 500 ? EXIT.unavailable : EXIT.failed;
}

function parsed(text: string, url: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandFailed(`what answers at ${url} is no Waypost server`);
  }
}
