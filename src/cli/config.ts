/** `waypost config`: prints the current configuration, or says what is wrong in it. */
import { describeConfig } from '../config/page.ts';
import { parseConfig } from '../config/parse.ts';
import { EXIT } from './command.ts';
import { configured } from './configured.ts';

export const config = configured(
  'config',
  {
    about: `Usage: waypost config [--dev] [options]

Prints every setting as "waypost serve" would see it, or with --dev as "waypost dev" would.
Ends with ${EXIT.usage} and says what is wrong when a setting is.`,
    options: {
      '--dev': 'As "waypost dev" would.',
    },
    settings: 'serve',
    example: 'config --dev --port 9000',
  },
  async (given, terminal) => {
    terminal.print(describeConfig(parseConfig(terminal.env, given.settings, { dev: given.has('dev') })));
    return EXIT.ok;
  },
);
