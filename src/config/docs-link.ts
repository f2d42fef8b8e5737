/**
 * Where people read the page `name` of `docs`, such as `troubleshooting`: on the site at `docsUrl`, or, while there is none, in the folder
 * that every package and clone contains.
 */
export function docsLink(docsUrl: string, name: string): string {
  return docsUrl === '' ? `docs/${name}.md` : `${docsUrl.replace(/\/+$/, '')}/${name}.html`;
}
