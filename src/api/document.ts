/**
 * Serves the interface document and its HTML page. Neither needs a token, since they contain no data of any project.
 */
import { hash } from 'node:crypto';
import { DOCS_STYLE, docsPage } from './docs-page.ts';
import { writeOpenApi } from './openapi.ts';
import { answerPrepared, prepare } from './prepared.ts';
import type { Route } from './route.ts';
import { DocumentSchema, PageSchema } from './schemas.ts';

const HEADERS = { 'cache-control': 'no-cache' };

/** As the console's: scripts of this server only, requests to this server only, and the page's own style. */
const PAGE_HEADERS = {
  ...HEADERS,
  'content-security-policy': [
    `default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'sha256-${hash('sha256', DOCS_STYLE, 'base64')}'`,
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** `others` are all other routes of the interface. Both texts are prepared on the first request. */
export function documentRoutes(others: readonly Route[]): Route[] {
  const readDocument = once(() => writeOpenApi([...others, ...routes]));
  const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
  const readJson = once(() => prepare('application/json', encode(JSON.stringify(readDocument()))));
  const readPage = once(() => prepare('text/html; charset=utf-8', encode(docsPage(readDocument()))));
  const routes: Route[] = [
    {
      method: 'GET',
      path: '/openapi.json',
      operationId: 'getOpenApiDocument',
      access: 'public',
      summary: 'This interface as an OpenAPI document.',
      answers: { 200: DocumentSchema },
      handle: async ({ rawHeaders }) => answerPrepared(await readJson(), rawHeaders, HEADERS),
    },
    {
      method: 'GET',
      path: '/docs',
      operationId: 'getDocumentation',
      access: 'public',
      summary: 'The same as a page to read, to search and to try.',
      answers: { 200: PageSchema },
      handle: async ({ rawHeaders }) => answerPrepared(await readPage(), rawHeaders, PAGE_HEADERS),
    },
  ];
  return routes;
}

function once<T extends object>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}
