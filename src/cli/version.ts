/** `waypost version`: prints the release. */
import { readVersion } from '../system/version.ts';
import { type Command, EXIT } from './command.ts';

export const version: Command = {
  help: () => 'Usage: waypost version\n\nExample: waypost version\n',
  async run(_args, terminal) {
    terminal.print(`${readVersion()}\n`);
    return EXIT.ok;
  },
};
