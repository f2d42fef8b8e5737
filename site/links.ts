/** Links of the pages are paths in the repository. On the site they lead to other pages, or into the repository. */
import { posix } from 'node:path';

/**
 * The target of `link` on `page`, both as they are in `docs`. `undefined` if it leads into the repository and `repository`, the address of
 * its default branch's files, is unknown.
 */
export function targetOf(page: string, link: string, repository: string | undefined): string | undefined {
  if (/^([a-z]+:|#)/.test(link)) return link;
  const path = posix.join('docs', posix.dirname(page), link);
  if (path.startsWith('docs/')) return link.replace(/\bREADME\.md(?=#|$)/, 'index.md');
  return repository && `${repository}/${path}`;
}
