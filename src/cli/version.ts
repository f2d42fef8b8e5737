/** `waypost version`: prints the release. */
import { readFileSync } from 'node:fs';
import { type Command, EXIT } from './command.ts';

/** The version in package.json, which is two folders up from the sources and from the compiled files alike. */
export function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

export const version: Command = {
  summary: 'print the version',
  help: () => 'Usage: waypost version\n',
  async run(_args, terminal) {
    terminal.print(`${readVersion()}\n`);
    return EXIT.ok;
  },
};
