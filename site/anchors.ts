/**
 * The anchor of a heading, the same as in repository browsers, so that links work on the site and in repository browsers.
 * `title` is the text without markup. VitePress appends `-1` for a second heading with the same text.
 */
export function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}
