/** `waypost version`: prints the version. */
import { readVersion } from '../system/version.ts';
import { EXIT } from './command.ts';
import { configured } from './configured.ts';

export const version = configured(
  'version',
  { about: 'Usage: waypost version', example: 'version' },
  async (_parsed, terminal) => {
    terminal.print(`${readVersion()}\n`);
    return EXIT.ok;
  },
);
