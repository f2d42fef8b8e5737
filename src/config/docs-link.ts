/**
 * Returns the link to the page `name` of `docs`, such as `troubleshooting`: on the site at `docsUrl`, or, if `docsUrl` is
 * empty, to the file in the folder `docs`, which every package and clone contains.
 */
export function docsLink(docsUrl: string, name: string): string {
  return docsUrl === '' ? `docs/${name}.md` : `${docsUrl.replace(/\/+$/, '')}/${name}.html`;
}
