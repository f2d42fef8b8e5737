/** `waypost config`: prints the current configuration, or its errors. */
import { describeConfig } from '../config/page.ts';
import { parseConfig } from '../config/parse.ts';
import { EXIT } from './command.ts';
import { commandWithSettings } from './command-with-settings.ts';

export const config = commandWithSettings(
  'config',
  {
    about: `Usage: waypost config [--dev] [options]

Prints every setting as "waypost serve" reads it, or with --dev as "waypost dev" does.
If a setting is invalid, prints the error and exits with ${EXIT.usage}.`,
    options: {
      '--dev': 'Use the defaults of "waypost dev".',
    },
    settings: 'serve',
    example: 'config --dev --port 9000',
  },
  async (parsed, terminal) => {
    terminal.print(describeConfig(parseConfig(terminal.env, parsed.settings, { dev: parsed.has('dev') })));
    return EXIT.ok;
  },
);
