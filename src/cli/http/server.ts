/** Sends requests to a server over HTTP, like any client, so that commands work from any machine. */
import { DEVELOPMENT_ACCOUNTS } from '../../config/development.ts';
import type { Environment } from '../../config/parse.ts';
import { CommandFailed, EXIT } from '../command.ts';
import { plain } from '../plain.ts';
import { operationOf, pathOf } from './operations.ts';
import { DEFAULT_PROFILE, readProfiles } from './profiles.ts';
import { fetchVerbatim, isDotSegment } from './verbatim-path.ts';

export const DEFAULT_URL = 'http://127.0.0.1:8080';

/** The parts of a request besides its operation. */
export interface RequestParts {
  /** The values of the placeholders in the path, in order. */
  words?: readonly string[];
  query?: URLSearchParams;
  headers?: readonly (readonly [string, string])[];
  body?: string | Uint8Array<ArrayBuffer>;
  /** A body that is sent as JSON. */
  json?: unknown;
  signal?: AbortSignal;
}

/** The server to which a command sends requests. Each method throws `CommandFailed` with the error text of the server. */
export interface Server {
  url: string;
  /** The address and its profile, for messages to the user. */
  title: string;
  /** Sends an operation. Resolves to the parsed response, or to `undefined` if the response has no body. */
  ask<T>(operationId: string, parts?: RequestParts): Promise<T>;
  /** The response body as a stream. */
  read(operationId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/** The values of the options that select the server and the token. */
export interface ServerOptions {
  server?: string | undefined;
  token?: string | undefined;
  profile?: string | undefined;
}

/** Options take precedence over the environment, and the environment takes precedence over the default profile. */
export function serverOf(options: ServerOptions, env: Environment): Server {
  const { url: configuredUrl, token: configuredToken, profile } = accessOf(options, env);
  const token = configuredToken?.trim();
  const url = (configuredUrl ?? DEFAULT_URL).replace(/\/+$/, '');
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    const origin =
      profile !== undefined ? `profile ${profile}` : options.server === undefined ? 'QSTASH_URL' : '--server';
    throw new CommandFailed(`${origin}: must be an http or https address, not ${JSON.stringify(url)}`, EXIT.usage);
  }

  const tokenFrom =
    profile !== undefined
      ? `the token of the profile ${profile}`
      : options.token === undefined
        ? 'QSTASH_TOKEN'
        : '--token';
  checkToken(token, tokenFrom);

  async function send(
    operationId: string,
    { words = [], query, headers = [], body, json, signal }: RequestParts,
  ): Promise<Response> {
    const operation = operationOf(operationId);
    const search = query === undefined || query.size === 0 ? '' : `?${query}`;
    // `Headers` takes one character for each byte of the UTF-8 text.
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
        configuredUrl === undefined
          ? '; set QSTASH_URL and QSTASH_TOKEN, see "waypost login", or start one with "waypost dev"'
          : '';
      throw new CommandFailed(`no server responds at ${url}: ${causeOf(error)}${advice}`, EXIT.unavailable);
    }
    if (response.ok) return response;
    const errorText = (parseResponse(await response.text(), url) as { error?: unknown } | undefined)?.error;
    const text =
      typeof errorText === 'string'
        ? withUrlGroup(plain(errorText))
        : `the server responded with status ${response.status}`;
    throw new CommandFailed(response.status === 401 ? `${text}${adviceOn401()}` : text, exitCodeOf(response.status));
  }

  function adviceOn401(): string {
    if (token === undefined) return '; set QSTASH_TOKEN, or see "waypost login"';
    return ` at ${url}: ${tokenFrom} belongs to another server, is revoked, or has quotes around it`;
  }

  return {
    url,
    title: profile === undefined ? url : `${url} (profile ${profile})`,
    ask: async <T>(operationId: string, parts: RequestParts = {}) =>
      parseResponse(await (await send(operationId, parts)).text(), url) as T,
    read: async (operationId, signal) => {
      const { body } = await send(operationId, { signal });
      if (body === null) throw new CommandFailed(`the server at ${url} is not a Waypost server`);
      return body;
    },
  };
}

/** Replaces *topic* in an error text. On the wire, the word must stay: clients compare the texts (contract M 13, 25). */
function withUrlGroup(text: string): string {
  return text.replace(/^(invalid )?topic /, '$1URL group ');
}

/** Throws `CommandFailed`, without printing the token, for characters that a header cannot hold. */
function checkToken(token: string | undefined, origin: string): void {
  if (token === undefined || /^[!-~]*$/.test(token)) return;
  throw new CommandFailed(
    `${origin}: has a line break or another character that tokens never have; copy it again`,
    EXIT.usage,
  );
}

/** Throws `CommandFailed` for a value that no header can hold. `flag`: the option with the value. */
export function checkHeader(flag: string, value: string): void {
  const wrong = [...value.trim()].find((char) => char > 'ÿ' || (char < ' ' && char !== '\t'));
  if (wrong === undefined) return;
  const what = wrong > 'ÿ' ? 'characters beyond Latin-1' : 'line breaks and control characters';
  throw new CommandFailed(`${flag}: ${what} cannot be sent in a header`, EXIT.usage);
}

/** The address and the token of a profile are only used together, so that no token is sent to another server. */
function accessOf(
  { server, token, profile }: ServerOptions,
  env: Environment,
): { url?: string | undefined; token?: string | undefined; profile?: string } {
  if (profile !== undefined && (server ?? token) !== undefined)
    throw new CommandFailed('--profile: cannot be combined with --server or --token', EXIT.usage);
  const explicit = {
    url: server ?? (env['QSTASH_URL'] || undefined),
    token: token ?? (env['QSTASH_TOKEN'] || undefined),
  };
  if (profile === undefined && (explicit.url ?? explicit.token) !== undefined) return explicit;
  const saved = readProfiles(env).get(profile ?? DEFAULT_PROFILE);
  if (saved) return { ...saved, profile: profile ?? DEFAULT_PROFILE };
  if (profile === undefined) return explicit;
  throw new CommandFailed(`there is no profile ${JSON.stringify(profile)}; see waypost profiles`, EXIT.notFound);
}

/** The message of the cause of an error of `fetch`, since only the cause names the address and the problem. */
function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

function exitCodeOf(status: number): number {
  if (status === 404) return EXIT.notFound;
  if (status === 401 || status === 403) return EXIT.denied;
  return status === 429 || status >= 500 ? EXIT.unavailable : EXIT.failed;
}

function parseResponse(text: string, url: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandFailed(`the server at ${url} is not a Waypost server`);
  }
}
