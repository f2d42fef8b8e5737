/** `waypost config`: prints the current configuration, or says what is wrong in it. */
import { describeConfig, settingsHelp } from '../config/page.ts';
import { parseConfig } from '../config/parse.ts';
import { type Command, EXIT, takeSwitch } from './command.ts';

export const config: Command = {
  help: () =>
    `Usage: waypost config [--dev] [options]

Prints every setting as "waypost serve" would see it, or with --dev as "waypost dev" would.
Ends with ${EXIT.usage} and says what is wrong when a setting is.

  --dev
      As "waypost dev" would.

Example: waypost config --dev --port 9000

${settingsHelp(false)}`,
  async run(args, terminal) {
    const { given: dev, rest } = takeSwitch(args, '--dev');
    terminal.print(describeConfig(parseConfig(terminal.env, rest, { dev })));
    return EXIT.ok;
  },
};
