/**
 * Finds words that the glossary replaces, in pages, and in comments, labels and messages of sources. Names in code and
 * tests are not checked.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const GLOSSARY = 'docs/glossary.md';
const HEADING = '## Words that are not used';
const FILES = ['*.md', 'docs/**/*.md', '{src,packages,console,bench,scripts,examples}/**/*.{md,ts,tsx}'];
const FILES_EXCLUDED = ['**/node_modules/**', '**/dist/**', '**/generated/**'];

/** Returns `<file>:<line>: "<word>": write <other word>` for each replaced word in the files below `root`. */
export function findUnusedWords(root: string): string[] {
  const words = readWords(readFileSync(join(root, GLOSSARY), 'utf8'));
  return globSync(FILES, { cwd: root, exclude: FILES_EXCLUDED }).flatMap((path) => {
    const name = path.replaceAll('\\', '/');
    const lines = readFileSync(join(root, path), 'utf8').split('\n');
    const end = name === GLOSSARY ? lines.indexOf(HEADING) : lines.length;
    return lines.slice(0, end).flatMap((line, index) => {
      const text = prose(name, line);
      return words.flatMap(({ pattern, better }) => {
        const found = pattern.exec(text);
        return found ? `${name}:${index + 1}: "${found[0]}": write ${better}` : [];
      });
    });
  });
}

interface Word {
  pattern: RegExp;
  better: string;
}

/** The rows of the table under `HEADING`. Throws if there are none. */
function readWords(glossary: string): Word[] {
  const [, table = ''] = glossary.split(HEADING);
  const rows = [...table.matchAll(/^\| (?!not \|)([^|]+) \| ([^|]+) \|$/gm)];
  if (rows.length === 0) throw new Error(`${GLOSSARY} has no words under "${HEADING}"`);
  return rows.map(([, words = '', better = '']) => ({
    pattern: new RegExp(`(?<![\\w-])(${words.split(', ').join('|')})(?![\\w-])`, 'i'),
    better,
  }));
}

/**
 * Returns the part of a line that people read: the whole line of a page; comments, strings and element texts of a source.
 */
function prose(file: string, line: string): string {
  if (!/\.tsx?$/.test(file)) return line;
  const comment = /^\s*(\/?\*\*?|\/\/).*|\/\/ .*|\/\*\* .*/.exec(line)?.[0] ?? '';
  const texts = [...line.matchAll(/'[^']*'|"[^"]*"|`[^`]*`|>[^<>{}=]+</g)].map(([text]) => text);
  return [comment, ...texts].join('\n');
}
