/** Filters the entries of the page by the words of a search, and returns the number of matches. */

/** The text of each entry, read before the user types into the entry. */
const texts = new WeakMap<Element, string>();

export function find(searched: string): string {
  const words = searched.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const section of document.querySelectorAll<HTMLElement>('main section')) {
    let isEmpty = true;
    for (const entry of section.querySelectorAll<HTMLElement>(':scope > details')) {
      entry.hidden = !words.every((word) => textOf(entry).includes(word));
      if (entry.hidden) continue;
      isEmpty = false;
      count += 1;
    }
    section.hidden = isEmpty;
  }
  return words.length === 0 ? '' : `${count} found`;
}

function textOf(entry: Element): string {
  let text = texts.get(entry);
  if (text === undefined) {
    text = (entry.textContent ?? '').toLowerCase();
    texts.set(entry, text);
  }
  return text;
}
