/** Converts the links of pages, which are paths in the repository, to links of the site. */
import { posix } from 'node:path';

/**
 * The target on the site of `link`, as written on `page`, a path below `docs`. A link out of `docs` leads to `repository`, the address of the
 * files of the default branch; `undefined` without that address.
 */
export function targetOf(page: string, link: string, repository: string | undefined): string | undefined {
  if (/^([a-z]+:|#)/.test(link)) return link;
  const path = posix.join('docs', posix.dirname(page), link);
  if (path.startsWith('docs/')) return link.replace(/\bREADME\.md(?=#|$)/, 'index.md');
  return repository && `${repository}/${path}`;
}
