/**
 * Serves the console, a web application, and identifies the server at `/`. Nothing here needs a token: the console reads its
 * data from the interface, with the token of its user.
 */
import type { IncomingMessage } from 'node:http';
import { pathAndQueryOf } from '../../protocol/urls/request-target.ts';
import { type ApiResponse, jsonResponse, refusal } from '../response.ts';
import { type PreparedContent, preparedResponse } from './prepared-content.ts';

/** Files by name, such as `index.html` and `assets/index-B1x2.js`. No other file is served. */
export type ConsoleFiles = ReadonlyMap<string, PreparedContent>;

export interface ConsoleOptions {
  version: string;
  /** The public token, in development only. The console then does not ask for a token. */
  developmentToken?: string | undefined;
  /** The address of the documentation site; empty if there is none. */
  docsUrl?: string;
  /** Resolves to `undefined` while the console is not built. */
  readFiles: () => Promise<ConsoleFiles | undefined>;
}

const HOME = '/console/';
/** The files of this folder have a hash of their content in their names, which Vite adds. */
const HASHED = 'assets/';
const A_YEAR_S = 31_536_000;

/** Allows only code and style of the console, only requests to this server, and no page that shows the console in a frame. */
const HEADERS = {
  'content-security-policy': [
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'",
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

export class Console {
  readonly #options: ConsoleOptions;
  #files: ConsoleFiles | undefined;
  /** Concurrent requests share one read of the files. */
  #reading: Promise<ConsoleFiles | undefined> | undefined;

  constructor(options: ConsoleOptions) {
    this.#options = options;
  }

  /** The response to a request for `/` or the console; `undefined` for any other request. */
  responseTo({
    method,
    url = '',
    headers,
    rawHeaders,
  }: IncomingMessage): ApiResponse | Promise<ApiResponse> | undefined {
    if (method !== 'GET' && method !== 'HEAD') return undefined;
    const [path = ''] = pathAndQueryOf(url).split('?', 1);
    if (path === '/') return acceptsHtml(headers) ? toHome() : this.#self();
    if (path === '/console') return toHome();
    if (!path.startsWith(HOME)) return undefined;
    const name = path.slice(HOME.length);
    return name === 'environment.json' ? this.#environment() : this.file(name, rawHeaders);
  }

  /** The response to a program that calls `/`. */
  #self(): ApiResponse {
    const { version } = this.#options;
    const self = { name: 'Waypost', version, console: HOME, docs: '/docs', openapi: '/openapi.json' };
    return { ...jsonResponse(200, self), headers: { ...HEADERS, 'cache-control': 'no-store' } };
  }

  /** The data that the console needs before its first call. Pages of other origins are rejected earlier (decision 026). */
  #environment(): ApiResponse {
    const { version, developmentToken: token, docsUrl } = this.#options;
    const environment = {
      ...(token === undefined ? { mode: 'serve' } : { mode: 'dev', token }),
      version,
      ...(docsUrl && { docsUrl }),
    };
    return { ...jsonResponse(200, environment), headers: { ...HEADERS, 'cache-control': 'no-store' } };
  }

  /** Serves a built file; for any other name, the application. */
  async file(name: string, rawHeaders: readonly string[]): Promise<ApiResponse> {
    const files = this.#files ?? (await this.#read());
    if (files === undefined) return notBuilt();
    // The application has a screen for each path, so every path that is not a file leads to the application.
    const isHashed = name.startsWith(HASHED);
    const file = files.get(name) ?? (isHashed ? undefined : files.get('index.html'));
    if (file === undefined) return refusal(404, 'not found');
    const cacheControl = isHashed ? `public, max-age=${A_YEAR_S}, immutable` : 'no-cache';
    return preparedResponse(file, rawHeaders, { ...HEADERS, 'cache-control': cacheControl });
  }

  /** Called at the first request, so that a server whose console is not used does not keep the files in memory. */
  #read(): Promise<ConsoleFiles | undefined> {
    this.#reading ??= this.#options.readFiles().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading.then((files) => (this.#files = files));
  }
}

function toHome(): ApiResponse {
  return { status: 302, json: '', headers: { ...HEADERS, location: HOME, 'cache-control': 'no-store' } };
}

function acceptsHtml({ accept = '' }: IncomingMessage['headers']): boolean {
  return /\btext\/html\b/i.test(accept);
}

function notBuilt(): ApiResponse {
  const body = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Waypost: the console is not built</title></head>
<body><h1>The console is not built</h1>
<p>A clone of the sources builds it with <code>npm run console</code>, and <code>npm start</code> does so by itself.
Then load this page again. The server works without it: see <a href="/openapi.json">its interface</a>.</p></body>
</html>
`;
  const headers = { ...HEADERS, 'cache-control': 'no-store' };
  return { status: 404, json: '', content: { type: 'text/html; charset=utf-8', body }, headers };
}
