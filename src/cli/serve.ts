/** `waypost serve`: the server for production. */
import { settingsHelp } from '../config/page.ts';
import { parseConfig } from '../config/parse.ts';
import { type Command, CommandFailed, EXIT } from './command.ts';
import { nextSignal } from './signal.ts';

export const serve: Command = {
  help: () =>
    `Usage: waypost serve [options]

Starts the server on a data folder that "waypost init" has prepared. Private destinations are refused unless
--allow-destinations names them.

Example: waypost serve --host 0.0.0.0 --data-dir /var/lib/waypost

${settingsHelp(false)}`,
  async run(args, terminal) {
    const config = parseConfig(terminal.env, args);
    if (config.memory)
      throw new CommandFailed('serve keeps what it accepts: --memory is for "waypost dev"', EXIT.usage);
    const signalled = nextSignal(); // heard from now on: the next line takes a while
    const { runServer } = await import('./run-server.ts');
    return runServer(config, terminal, { credentials: 'own', signalled });
  },
};
