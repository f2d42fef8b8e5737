/**
 * Serves the console, a web application, and says at `/` what this server is. Nothing here needs a token: what the
 * console shows, it reads from the interface with the token of whoever looks.
 */
import type { IncomingMessage } from 'node:http';
import { pathAndQueryOf } from '../../protocol/urls/request-target.ts';
import { type ApiResponse, jsonResponse, refusal } from '../response.ts';
import { type PreparedContent, preparedResponse } from './prepared-content.ts';

/** By name, such as `index.html` and `assets/index-B1x2.js`. No other file is served. */
export type ConsoleFiles = ReadonlyMap<string, PreparedContent>;

export interface ConsoleOptions {
  version: string;
  /** The published token, in development only: the console then asks nobody for one. */
  developmentToken?: string | undefined;
  /** The address of the documentation site; empty: there is none. */
  docsUrl?: string;
  /** Resolves to `undefined` while the console is not built. */
  readFiles: () => Promise<ConsoleFiles | undefined>;
}

const HOME = '/console/';
/** Vite puts a hash of the content into the names of the files here. */
const HASHED = 'assets/';
const A_YEAR_S = 31_536_000;

/** Code and style of the console only, requests to this server only, and no page may show the console in a frame. */
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
  /** Requests at the same time share one look at the disk. */
  #reading: Promise<ConsoleFiles | undefined> | undefined;

  constructor(options: ConsoleOptions) {
    this.#options = options;
  }

  /** The answer to a request for `/` or the console; `undefined` when it asks for something else. */
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

  /** What a program that calls `/` learns. */
  #self(): ApiResponse {
    const { version } = this.#options;
    const self = { name: 'Waypost', version, console: HOME, docs: '/docs', openapi: '/openapi.json' };
    return { ...jsonResponse(200, self), headers: { ...HEADERS, 'cache-control': 'no-store' } };
  }

  /** What the console must know before it can call. Pages of other origins are refused earlier (decision 026). */
  #environment(): ApiResponse {
    const { version, developmentToken: token, docsUrl } = this.#options;
    const environment = {
      ...(token === undefined ? { mode: 'serve' } : { mode: 'dev', token }),
      version,
      ...(docsUrl && { docsUrl }),
    };
    return { ...jsonResponse(200, environment), headers: { ...HEADERS, 'cache-control': 'no-store' } };
  }

  /** One of the built files; the application for any other name. */
  async file(name: string, rawHeaders: readonly string[]): Promise<ApiResponse> {
    const files = this.#files ?? (await this.#read());
    if (files === undefined) return notBuilt();
    // The application finds its screens by the path, so every path that is no file leads to it.
    const isHashed = name.startsWith(HASHED);
    const file = files.get(name) ?? (isHashed ? undefined : files.get('index.html'));
    if (file === undefined) return refusal(404, 'not found');
    const cacheControl = isHashed ? `public, max-age=${A_YEAR_S}, immutable` : 'no-cache';
    return preparedResponse(file, rawHeaders, { ...HEADERS, 'cache-control': cacheControl });
  }

  /** Not before the first request: a server that nobody looks at keeps none of it in memory. */
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
