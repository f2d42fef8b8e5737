/**
 * Reads the sidebar from the lists in `docs/README.md`, which is the home page of the site and the index in a repository browser.
 * An item that links to the README of a folder contains all pages of the folder.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface SidebarItem {
  text: string;
  /** A path below `docs`, such as `recipes/fan-out.md`, or outside of `docs`: `../packages/workflow/README.md`. */
  page?: string;
  items: SidebarItem[];
}

export const HOME = 'README.md';
/** `- [Text](page.md): description`, or `- Text` for an item without a page; indented below its parent item. */
const LIST_ITEM = /^( *)- (?:\[(?<linked>[^\]]+)\]\((?<page>[^)#]+)\)|(?<plain>[^[:]+))/;

/** Returns one group for each heading of the home page that has a list. */
export function readSidebar(docs: string): SidebarItem[] {
  const groups: SidebarItem[] = [];
  for (const line of readFileSync(join(docs, HOME), 'utf8').split('\n')) {
    const heading = /^## (.+)$/.exec(line)?.[1];
    if (heading !== undefined) groups.push({ text: heading, items: [] });
    const [, indent = '', linked, page, plain = ''] = LIST_ITEM.exec(line) ?? [];
    const group = groups.at(-1);
    if (group === undefined || (page === undefined && plain === '')) continue;
    const parent = indent === '' ? group : group.items.at(-1);
    parent?.items.push(page === undefined ? { text: plain.trim(), items: [] } : linkedItem(docs, linked ?? '', page));
  }
  return groups.filter(({ items }) => items.length > 0);
}

function linkedItem(docs: string, text: string, page: string): SidebarItem {
  const folder = /^([a-z-]+)\/README\.md$/.exec(page)?.[1];
  return { text, page, items: folder === undefined ? [] : pagesOf(docs, folder) };
}

/** The pages of the folder except its README, sorted by name. The text of each item is the first heading of its page. */
function pagesOf(docs: string, folder: string): SidebarItem[] {
  const names = readdirSync(join(docs, folder)).filter((name) => name.endsWith('.md') && name !== 'README.md');
  return names.toSorted().map((name) => {
    const page = `${folder}/${name}`;
    const title = /^# (.+)$/m.exec(readFileSync(join(docs, page), 'utf8'))?.[1] ?? name;
    return { text: title.replaceAll('`', ''), page, items: [] };
  });
}
