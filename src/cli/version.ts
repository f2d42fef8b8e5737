/** `waypost version`: prints the version. */
import { readVersion } from '../system/version.ts';
import { EXIT } from './command.ts';
import { commandWithSettings } from './command-with-settings.ts';

export const version = commandWithSettings(
  'version',
  { about: 'Usage: waypost version', example: 'version' },
  async (_parsed, terminal) => {
    terminal.print(`${readVersion()}\n`);
    return EXIT.ok;
  },
);
