/** The check for words that the glossary replaces finds them in each kind of text that it reads, and ignores some others. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { findUnusedWords } from '../../scripts/unused-words.ts';

const GLOSSARY = fileURLToPath(new URL('../../docs/glossary.md', import.meta.url));
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'waypost-words-'));
  mkdirSync(join(root, 'docs'));
  cpSync(GLOSSARY, join(root, 'docs/glossary.md'));
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

function found(file: string, text: string): string[] {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), text);
  return findUnusedWords(root);
}

it.each([
  ['a heading', 'docs/a.md', '# Once more\n'],
  ['the text of a page', 'README.md', 'Publish it once more.\n'],
  ['a comment', 'src/a.ts', 'const a = 1; // once more\n'],
  ['the head of a file', 'src/engine/a.ts', '/**\n * Sends it once more.\n */\n'],
  ['a message', 'src/a.ts', "throw new Error('try once more');\n"],
  ['a label of the console', 'console/src/a.tsx', '<button>Once more</button>\n'],
])('finds a replaced word in %s and says what to write', (_, file, text) => {
  expect(found(file, text)).toEqual([expect.stringMatching(/^\S+:[12]: "once more": write again$/i)]);
});

it.each([
  ['names in code', 'src/a.ts', 'const mend = 1;\n'],
  ['longer words', 'docs/a.md', 'We recommend it.\n'],
  ['the glossary’s own table', 'docs/a.md', ''],
])('leaves %s alone', (_, file, text) => {
  expect(found(file, text)).toEqual([]);
});

it('refuses a glossary without the table', () => {
  writeFileSync(join(root, 'docs/glossary.md'), '# Glossary\n');
  expect(() => findUnusedWords(root)).toThrow('has no words');
});
