/** Configures the documentation site (https://vitepress.dev): `npm run docs` serves it, `npm run docs -- build` writes it to `site/dist`. */
import { fileURLToPath } from 'node:url';
import { renderMermaidSVG } from 'beautiful-mermaid';
import { type DefaultTheme, defineConfig, type MarkdownRenderer } from 'vitepress';
import { anchorOf } from '../anchors.ts';
import { targetOf } from '../links.ts';
import { readSidebar, type SidebarItem } from '../sidebar.ts';

const DOCS = fileURLToPath(new URL('../../docs', import.meta.url));
const DESCRIPTION = 'A self-hosted message queue and durable workflow service that delivers over HTTP';
/**
 * The address for links to sources, such as `https://git.example.com/waypost/blob/main`. Without this address, links to
 * sources are plain text.
 */
const REPOSITORY = process.env['DOCS_REPOSITORY'] || undefined;

/** Variables of the theme, so that diagrams follow the dark and light mode of the page. */
const COLORS = { bg: 'var(--vp-c-bg)', fg: 'var(--vp-c-text-1)', transparent: true };
const DIAGRAM = /^```mermaid\n.*?^```$/gms;

export default defineConfig({
  title: 'Waypost',
  description: DESCRIPTION,
  lang: 'en',
  srcDir: DOCS,
  outDir: fileURLToPath(new URL('../dist', import.meta.url)),
  cacheDir: fileURLToPath(new URL('../node_modules/.cache/vitepress', import.meta.url)),
  rewrites: (page) => page.replace(/\bREADME\.md$/, 'index.md'),
  transformHead: ({ siteData }) => [['link', { rel: 'icon', href: `${siteData.base}icon.svg`, type: 'image/svg+xml' }]],
  markdown: {
    // Pages contain no HTML: `<address>` in a sentence is text.
    html: false,
    // The name of a file, such as contract.md, must not become a link.
    linkify: false,
    anchor: { slugify: anchorOf },
    config: (markdown) => {
      resolveLinks(markdown);
      drawDiagrams(markdown);
      removeComments(markdown);
    },
  },
  themeConfig: {
    logo: '/icon.svg',
    sidebar: readSidebar(DOCS).map((group) => ({ text: group.text, items: group.items.flatMap(sidebarItem) })),
    outline: [2, 3],
    search: {
      provider: 'local',
      options: { _render: (source, env, markdown) => markdown.render(source.replaceAll(DIAGRAM, ''), env) },
    },
    externalLinkIcon: true,
  },
  vite: {
    server: { host: '127.0.0.1' },
    preview: { host: '127.0.0.1' },
    // Contains the icon of the site.
    publicDir: fileURLToPath(new URL('../../console/public', import.meta.url)),
    build: { chunkSizeWarningLimit: 2000 },
    plugins: [
      {
        name: 'vue of the site',
        enforce: 'pre',
        // Pages become components that import Vue, but the folder of the pages has no packages. As an external module,
        // Vue is found from the folder of the server build.
        resolveId: (id, _importer, { ssr }) => (ssr && /^vue(\/|$)/.test(id) ? { id, external: true } : undefined),
      },
    ],
  },
});

function sidebarItem({ text, page, items }: SidebarItem): DefaultTheme.SidebarItem[] {
  const target = page === undefined ? undefined : targetOf('README.md', page, REPOSITORY);
  if (page !== undefined && target === undefined) return [];
  const link = target?.replace(/(^|\/)index\.md$/, '$1').replace(/^(?!https?:)/, '/');
  return [
    {
      text,
      ...(link !== undefined && { link }),
      ...(items.length > 0 && { collapsed: true, items: items.flatMap(sidebarItem) }),
    },
  ];
}

/** Resolves links with `targetOf`. A link without a target becomes plain text. */
function resolveLinks(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('links', ({ tokens, env }) => {
    for (const { children } of tokens) {
      let isUnresolved = false;
      for (const token of children ?? []) {
        if (token.type === 'link_open') {
          const target = targetOf(env.relativePath, token.attrGet('href') ?? '', REPOSITORY);
          isUnresolved = target === undefined;
          if (target !== undefined) token.attrSet('href', target);
        }
        if (isUnresolved && token.type.startsWith('link_')) token.type = 'text';
      }
    }
  });
}

/**
 * Draws diagrams as SVG when the site is built, so that pages need no script. The diagrams have the colours of the theme
 * (style.css).
 */
function drawDiagrams({ renderer }: MarkdownRenderer): void {
  const { fence } = renderer.rules;
  renderer.rules.fence = (tokens, index, ...others) => {
    const { info = '', content = '' } = tokens[index] ?? {};
    if (info.trim() !== 'mermaid') return fence?.(tokens, index, ...others) ?? '';
    const picture = renderMermaidSVG(content, COLORS).replace(/<style>.*?<\/style>/s, '');
    return `<figure class="diagram" v-pre>${picture}</figure>\n`;
  };
}

/** Removes comments, which would be shown as paragraphs, since HTML is disabled. */
function removeComments(markdown: MarkdownRenderer): void {
  markdown.core.ruler.after('block', 'comments', (state) => {
    const { tokens } = state;
    const isComment = (index: number) => tokens[index]?.type === 'inline' && /^<!--.*-->$/s.test(tokens[index].content);
    // The tokens before and after a comment open and close its paragraph.
    state.tokens = tokens.filter((_, index) => ![index - 1, index, index + 1].some(isComment));
  });
}
