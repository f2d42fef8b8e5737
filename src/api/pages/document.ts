/**
 * Serves the interface document and its HTML page, which is built with the console. Neither needs a token, since neither
 * contains data of projects.
 */
import { writeOpenApi } from '../openapi.ts';
import { type Route, row, type Services } from '../route.ts';
import { DocumentSchema, PageSchema } from '../schemas.ts';
import { type PreparedContent, prepareContent, preparedResponse } from './prepared-content.ts';

const HEADERS = { 'cache-control': 'no-cache' };

/** `others`: all other routes of the interface. The document is prepared at the first request. */
export function documentRoutes(others: readonly Route[], { console }: Services): Route[] {
  let document: Promise<PreparedContent> | undefined;
  const write = (): string => JSON.stringify(writeOpenApi([...others, ...routes]));
  const readDocument = () => (document ??= prepareContent('application/json', new TextEncoder().encode(write())));
  const routes: Route[] = [
    {
      ...row('public', 'GET', '/openapi.json', 'getOpenApiDocument'),
      summary: 'This API as an OpenAPI document.',
      responses: { 200: DocumentSchema },
      handle: async ({ rawHeaders }) => preparedResponse(await readDocument(), rawHeaders, HEADERS),
    },
    {
      ...row('public', 'GET', '/docs', 'getDocumentation'),
      summary: 'The API reference as a page with search and a form to try each request.',
      responses: { 200: PageSchema },
      handle: ({ rawHeaders }) => console.file('docs.html', rawHeaders),
    },
  ];
  return routes;
}
