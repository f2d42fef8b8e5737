/** Checks that each citation of the contract in code and docs, such as `contract M 4.4.5`, exists in docs/contract. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');

const PLACES = {
  I: placesIn(read('docs/contract/interface.md')),
  K: placesIn(read('docs/contract/checkpoints.md')),
  M: placesIn(read('docs/contract/messaging.md')),
  W: placesIn(read('docs/contract/workflow.md')),
};
type Letter = keyof typeof PLACES;

const SOURCES = ['{src,test,bench,scripts,examples,packages}/**/*.{ts,mjs,js,py,md,sql}', 'docs/**/*.md', '*.md'];
const citing = SOURCES.flatMap((pattern) => globSync(pattern, { cwd: root }))
  .filter((file) => !/node_modules|^docs\/contract\/|^test\/house\/citations/.test(file))
  .map((file) => ({ file, text: read(file) }));

/** Between two words of a comment a line may end. */
const GAP = String.raw`(?:\s*\n\s*(?:\*|//|#)?\s*|\s)`;
const NUMBER = String.raw`\d+(?:\.\d+)*[a-z]?\b`;
const CITATION = new RegExp(
  `\\bcontract${GAP}([IKMW]${GAP}${NUMBER}(?:(?:,|${GAP}and|${GAP}to)${GAP}(?:[IKMW]${GAP})?${NUMBER})*)`,
  'g',
);

describe('a citation of the contract', () => {
  it('leads to a section, an item or a row', () => {
    const wrong = citing.flatMap(({ file, text }) =>
      citationsIn(text)
        .filter(({ letter, place }) => !PLACES[letter].has(place))
        .map(({ letter, place }) => `${file}: contract ${letter} ${place}`),
    );
    expect(wrong).toEqual([]);
  });

  it('has one form', () => {
    const other = citing.flatMap(({ file, text }) => {
      const [found] =
        /(?<!docs\/contract\/)\b(?:messaging|workflow|interface)\.md|\b[IKMW] \d+\.\d/.exec(
          text.replaceAll(CITATION, ''),
        ) ?? [];
      return found === undefined ? [] : [`${file}: ${found}`];
    });
    expect(other).toEqual([]);
  });

  it.each([
    ['contract M 4.4.5', ['M 4.4.5']],
    ['(contract M 7.2, 8, W 9, 26.2 to 26.4)', ['M 7.2', 'M 8', 'W 9', 'W 26.2', 'W 26.4']],
    ['as contract W 14.6,\n * 14.7 and I 2.6 say', ['W 14.6', 'W 14.7', 'I 2.6']],
    ['contract M 26.18a', ['M 26.18a']],
  ])('is read: %j', (text, cited) => {
    expect(citationsIn(text).map(({ letter, place }) => `${letter} ${place}`)).toEqual(cited);
  });

  it.each(['M 4.4.5', 'M 29.151', 'M 6.3.8', 'W 6.4', 'W 26.110', 'I 2.6', 'K 3.6'])('finds %s', (place) => {
    const [letter, number] = place.split(' ') as [Letter, string];
    expect(PLACES[letter]).toContain(number);
  });

  it.each(['M 4.4.50', 'M 29.999', 'M 30', 'W 26.999', 'I 10'])('finds no %s', (place) => {
    const [letter, number] = place.split(' ') as [Letter, string];
    expect(PLACES[letter]).not.toContain(number);
  });
});

function citationsIn(text: string): { letter: Letter; place: string }[] {
  return [...text.matchAll(CITATION)].flatMap(([, list = '']) => {
    let letter: Letter = 'M';
    return [...list.matchAll(/[IKMW]\b|\d+(?:\.\d+)*[a-z]?/g)].flatMap(([word]) => {
      if (!(word in PLACES)) return [{ letter, place: word }];
      letter = word as Letter;
      return [];
    });
  });
}

/** The numbers of headings, and below each those of its items and of the rows of its tables. */
function placesIn(text: string): Set<string> {
  const places = new Set<string>();
  let section = '';
  for (const line of text.split('\n')) {
    const [, heading, last] = /^##+ (\d+(?:\.\d+)?)(?:–(\d+\.\d+))?/.exec(line) ?? [];
    if (heading !== undefined) {
      section = heading;
      for (const number of range(heading, last)) places.add(number);
    }
    const [, item] = /^(?:\| )?(\d+[a-z]?)(?:\. | \|)/.exec(line) ?? [];
    if (item !== undefined) places.add(`${section}.${item}`);
  }
  return places;
}

/** `6.3`, `6.5` is 6.3, 6.4 and 6.5, which share a heading. */
function range(first: string, last = first): string[] {
  const [chapter = '', from] = first.split('.');
  if (from === undefined) return [chapter];
  const to = Number(last.split('.')[1]);
  return Array.from({ length: to - Number(from) + 1 }, (_, index) => `${chapter}.${Number(from) + index}`);
}
