/** Reads the files of the built console into memory, prepared as responses. */
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ConsoleFiles } from '../api/pages/console.ts';
import { type PreparedContent, prepareContent } from '../api/pages/prepared-content.ts';

/** The relative path is the same from the sources and from the compiled files. */
const BUILT = fileURLToPath(new URL('../../dist/console', import.meta.url));

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
};

/** Resolves to undefined when `folder` has no console. The files take about 1 MiB, and compressed a third of 1 MiB. */
export async function readConsole(folder: string = BUILT): Promise<ConsoleFiles | undefined> {
  const names = await namesBelow(folder);
  if (!names.includes('index.html')) return undefined;
  const read = async (name: string): Promise<[string, PreparedContent]> => [name, await readOne(join(folder, name))];
  return new Map(await Promise.all(names.map(read)));
}

async function namesBelow(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    return files.map(({ parentPath, name }) => relative(folder, join(parentPath, name)).replaceAll(sep, '/'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

async function readOne(path: string): Promise<PreparedContent> {
  return prepareContent(CONTENT_TYPES[extname(path)] ?? 'application/octet-stream', await readFile(path));
}
