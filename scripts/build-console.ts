/**
 * Builds console/ and the API page to dist/console. `npm run console` and `npm start` run this script when needed
 * (setup.mjs).
 */
import { copyFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { writeOpenApi } from '../src/api/openapi.ts';
import { describedRoutes } from '../src/api/routes.ts';
import { writeConsoleTypes } from './console-types.ts';
import { docsPage } from './docs-page.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

writeConsoleTypes();
await build({
  configFile: `${root}console/vite.config.ts`,
  logLevel: 'warn',
});
writeFileSync(`${root}dist/console/docs.html`, docsPage(writeOpenApi(describedRoutes())));
copyFileSync(`${root}console/src/docs/style.css`, `${root}dist/console/docs.css`);
