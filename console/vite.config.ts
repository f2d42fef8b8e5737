import { fileURLToPath } from 'node:url';
import tailwindcss from '@tailwindcss/vite';
import { defineConfig } from 'vite';

/** The development server, for `npx vite console`. */
const SERVER = 'http://127.0.0.1:8080';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/console/',
  plugins: [tailwindcss()],
  build: {
    outDir: fileURLToPath(new URL('../dist/console', import.meta.url)),
    emptyOutDir: true,
    // The content security policy allows data URLs for images only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      // The API page (scripts/docs-page.ts) loads its script by this name.
      input: {
        index: fileURLToPath(new URL('index.html', import.meta.url)),
        docs: fileURLToPath(new URL('src/docs/main.ts', import.meta.url)),
      },
      // Few files, since a browser loads at most six at a time from one server.
      output: {
        entryFileNames: ({ name }) => (name === 'docs' ? 'docs.js' : 'assets/[name]-[hash].js'),
        codeSplitting: { groups: [{ name: 'shared', test: /node_modules|console\/src\/(api|parts)\// }] },
      },
      // The remaining warnings are about directives of server components, which this page does not have.
      checks: { pluginTimings: false },
      onwarn: (warning, warn) => {
        if (warning.code !== 'MODULE_LEVEL_DIRECTIVE') warn(warning);
      },
    },
  },
  server: { proxy: { '/v2': SERVER, '/console/environment.json': SERVER } },
});
