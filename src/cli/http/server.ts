/** Asks a server over HTTP, like any client, so that commands work from any machine. */
import { DEVELOPMENT_ACCOUNTS } from '../../config/development.ts';
import type { Environment } from '../../config/parse.ts';
import { CommandFailed, EXIT } from '../command.ts';
import { plain } from '../plain.ts';
import { operationOf, pathOf } from './operations.ts';
import { DEFAULT_PROFILE, readProfiles } from './profiles.ts';
import { fetchVerbatim, isDotSegment } from './verbatim-path.ts';

export const DEFAULT_URL = 'http://127.0.0.1:8080';

/** What a request holds besides its operation. */
export interface Asked {
  /** What stands in the path, in its order. */
  words?: readonly string[];
  query?: URLSearchParams;
  headers?: readonly (readonly [string, string])[];
  body?: string | Uint8Array<ArrayBuffer>;
  /** A value that is sent as JSON. */
  json?: unknown;
  signal?: AbortSignal;
}

/** Each method throws `CommandFailed` with the server's own text. */
export interface Server {
  url: string;
  /** The address as people are asked about it, with the profile that it is from. */
  title: string;
  /** The answer of an operation, parsed; `undefined` where it has no body. */
  ask<T>(operationId: string, asked?: Asked): Promise<T>;
  /** The answer as it comes in. */
  read(operationId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/** What the options name. */
export interface Given {
  server?: string | undefined;
  token?: string | undefined;
  profile?: string | undefined;
}

/** Options win over the environment, and both over the default profile. */
export function serverOf(given: Given, env: Environment): Server {
  const { url: named, token: found, profile } = accessOf(given, env);
  const token = found?.trim();
  const url = (named ?? DEFAULT_URL).replace(/\/+$/, '');
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    const origin =
      profile !== undefined ? `profile ${profile}` : given.server === undefined ? 'QSTASH_URL' : '--server';
    throw new CommandFailed(`${origin}: an http or https address is needed, not ${JSON.stringify(url)}`, EXIT.usage);
  }

  const tokenFrom =
    profile !== undefined
      ? `the token of the profile ${profile}`
      : given.token === undefined
        ? 'QSTASH_TOKEN'
        : '--token';
  checkToken(token, tokenFrom);

  async function send(
    operationId: string,
    { words = [], query, headers = [], body, json, signal }: Asked,
  ): Promise<Response> {
    const operation = operationOf(operationId);
    const search = query === undefined || query.size === 0 ? '' : `?${query}`;
    // A terminal has text; `Headers` takes a character for each byte.
    const sent = new Headers(headers.map(([name, value]) => [name, Buffer.from(value, 'utf8').toString('latin1')]));
    sent.set('authorization', `Bearer ${token ?? DEVELOPMENT_ACCOUNTS[0].token}`);
    if (json !== undefined) sent.set('content-type', 'application/json');
    const content = json === undefined ? body : JSON.stringify(json);
    let response: Response;
    try {
      const path = `${pathOf(operation, words)}${search}`;
      const { method } = operation;
      response = words.some(isDotSegment)
        ? await fetchVerbatim(url, path, { method, headers: sent })
        : await fetch(`${url}${path}`, {
            method,
            headers: sent,
            ...(content !== undefined && { body: content }),
            ...(signal && { signal }),
          });
    } catch (error) {
      const advice =
        named === undefined
          ? '; set QSTASH_URL and QSTASH_TOKEN, see "waypost login", or start one with "waypost dev"'
          : '';
      throw new CommandFailed(`no server answers at ${url}: ${causeOf(error)}${advice}`, EXIT.unavailable);
    }
    if (response.ok) return response;
    const said = (parsed(await response.text(), url) as { error?: unknown } | undefined)?.error;
    const text =
      typeof said === 'string' ? inOurWords(plain(said)) : `the server answered with status ${response.status}`;
    throw new CommandFailed(response.status === 401 ? `${text}${adviceOn401()}` : text, exitCodeOf(response.status));
  }

  function adviceOn401(): string {
    if (token === undefined) return '; set QSTASH_TOKEN, or see "waypost login"';
    return ` at ${url}: ${tokenFrom} is of another server, revoked, or has quotes around it`;
  }

  return {
    url,
    title: profile === undefined ? url : `${url} (profile ${profile})`,
    ask: async <T>(operationId: string, asked: Asked = {}) =>
      parsed(await (await send(operationId, asked)).text(), url) as T,
    read: async (operationId, signal) => {
      const { body } = await send(operationId, { signal });
      if (body === null) throw new CommandFailed(`what answers at ${url} is no Waypost server`);
      return body;
    },
  };
}

/** On the wire a URL group is a topic, and clients compare these texts (contract M 13, 25). */
function inOurWords(text: string): string {
  return text.replace(/^(invalid )?topic /, '$1URL group ');
}

/** What a header cannot hold is found here, and never shown. Throws `CommandFailed`. */
function checkToken(token: string | undefined, origin: string): void {
  if (token === undefined || /^[!-~]*$/.test(token)) return;
  throw new CommandFailed(
    `${origin}: has a line break or a character that a token does not have; copy it again`,
    EXIT.usage,
  );
}

/** Throws `CommandFailed` for a value that no header can hold. `flag`: what it was given with. */
export function checkHeader(flag: string, value: string): void {
  const wrong = [...value.trim()].find((char) => char > 'ÿ' || (char < ' ' && char !== '\t'));
  if (wrong === undefined) return;
  const what = wrong > 'ÿ' ? 'characters beyond Latin-1' : 'line breaks and control characters';
  throw new CommandFailed(`${flag}: ${what} cannot be sent in a header`, EXIT.usage);
}

/** An address and a token of a profile stay together: no token goes where it was not meant for. */
function accessOf(
  { server, token, profile }: Given,
  env: Environment,
): { url?: string | undefined; token?: string | undefined; profile?: string } {
  if (profile !== undefined && (server ?? token) !== undefined)
    throw new CommandFailed('--profile: goes with no --server and no --token', EXIT.usage);
  const told = { url: server ?? (env['QSTASH_URL'] || undefined), token: token ?? (env['QSTASH_TOKEN'] || undefined) };
  if (profile === undefined && (told.url ?? told.token) !== undefined) return told;
  const kept = readProfiles(env).get(profile ?? DEFAULT_PROFILE);
  if (kept) return { ...kept, profile: profile ?? DEFAULT_PROFILE };
  if (profile === undefined) return told;
  throw new CommandFailed(`there is no profile ${JSON.stringify(profile)}; see waypost profiles`, EXIT.notFound);
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
