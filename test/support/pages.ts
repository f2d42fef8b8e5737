/** Reads the fenced code blocks of a documentation page, in order. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

export interface Block {
  language: string;
  code: string;
  /** The file name, if the first line of the block is a comment with one: `// app.mts`, `# app.py`. */
  file?: string;
}

/** `page` is a path from the root of the repository. */
export function blocksOf(page: string): Block[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language = '', code = '']) => {
    const file = /^(?:\/\/|#) (\S+\.\w+)\n/.exec(code)?.[1];
    return file === undefined ? { language, code } : { language, code, file };
  });
}
