/** Builds console/ to dist/console. `npm run console` and `npm start` run this when it is needed, see setup.mjs. */
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { writeConsoleTypes } from './console-types.ts';

writeConsoleTypes();
await build({
  configFile: fileURLToPath(new URL('../console/vite.config.ts', import.meta.url)),
  logLevel: 'warn',
});
