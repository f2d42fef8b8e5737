/** Converts the links of pages, which are paths in the repository, to links of the site. */
import { posix } from 'node:path';

/**
 * Returns the target on the site for a `link` of `page`. `page` is a path below `docs`. For a link out of `docs`, the
 * target is below `repository`, the address of the files of the default branch. Without this address, the function
 * returns undefined.
 */
export function targetOf(page: string, link: string, repository: string | undefined): string | undefined {
  if (/^([a-z]+:|#)/.test(link)) return link;
  const path = posix.join('docs', posix.dirname(page), link);
  if (path.startsWith('docs/')) return link.replace(/\bREADME\.md(?=#|$)/, 'index.md');
  return repository && `${repository}/${path}`;
}
