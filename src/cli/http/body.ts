/** Reads the body of a request from the command line, a file or standard input. */
import { readFile } from 'node:fs/promises';
import { CommandFailed, EXIT } from '../command.ts';
import type { Call } from './verb.ts';

export const BODY_OPTIONS = {
  '--body <text>': 'The body.',
  '-f, --file <path>': 'The file with the body; - for standard input.',
} as const;

/** Throws `CommandFailed` when the command line has two bodies, or the file with the body cannot be read. */
export async function bodyOf({ values, terminal }: Call): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const text = values('body').at(-1);
  const path = [...values('file'), ...values('f')].at(-1);
  if (text !== undefined && path !== undefined)
    throw new CommandFailed('--body: cannot be combined with --file', EXIT.usage);
  if (text !== undefined) return new TextEncoder().encode(text);
  if (path === undefined) return undefined;
  if (path === '-') return Uint8Array.from(await terminal.readInput());
  const bytes = await readFile(path).catch((error: Error) => {
    throw new CommandFailed(`--file: ${error.message}`, EXIT.usage);
  });
  return Uint8Array.from(bytes);
}
