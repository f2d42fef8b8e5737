/**
 * The anchor of a heading, as repository browsers make it: links then work there and on the site. `title` is its text without markup; a
 * second heading with the same text gets `-1`.
 */
export function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}
