import { fileURLToPath } from 'node:url';
import tailwindcss from '@tailwindcss/vite';
import { defineConfig } from 'vite';

/** Where a server under development listens, for `npx vite console`. */
const SERVER = 'http://127.0.0.1:8080';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/console/',
  plugins: [tailwindcss()],
  build: {
    outDir: fileURLToPath(new URL('../dist/console', import.meta.url)),
    emptyOutDir: true,
    // The content security policy allows no data of the page's own as a source of anything but images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      // The page of the interface (scripts/docs-page.ts) loads its script by this name.
      input: {
        index: fileURLToPath(new URL('index.html', import.meta.url)),
        docs: fileURLToPath(new URL('src/docs/main.ts', import.meta.url)),
      },
      // Few files: a browser asks a server for six at a time, and for no more until they are there.
      output: {
        entryFileNames: ({ name }) => (name === 'docs' ? 'docs.js' : 'assets/[name]-[hash].js'),
        codeSplitting: { groups: [{ name: 'shared', test: /node_modules|console\/src\/(api|parts)\// }] },
      },
      // Marks of server components, which say nothing to a page that has none.
      checks: { pluginTimings: false },
      onwarn: (warning, warn) => {
        if (warning.code !== 'MODULE_LEVEL_DIRECTIVE') warn(warning);
      },
    },
  },
  server: { proxy: { '/v2': SERVER, '/console/environment.json': SERVER } },
});
