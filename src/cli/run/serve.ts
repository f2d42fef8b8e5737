/** `waypost serve`: runs the server for production. */
import { parseConfig } from '../../config/parse.ts';
import { CommandFailed, EXIT } from '../command.ts';
import { commandWithSettings } from '../command-with-settings.ts';
import { nextSignal } from '../signal.ts';

export const serve = commandWithSettings(
  'serve',
  {
    about: `Usage: waypost serve [options]

Starts the server on a data folder that "waypost init" has prepared. Private destinations are refused unless
--allow-destinations allows them.`,
    settings: 'serve',
    example: 'serve --host 0.0.0.0 --data-dir /var/lib/waypost',
  },
  async (parsed, terminal) => {
    const config = parseConfig(terminal.env, parsed.settings);
    if (config.memory) throw new CommandFailed('serve stores its messages: --memory is for "waypost dev"', EXIT.usage);
    const stopSignal = nextSignal(); // before the import, which takes a while
    const { runServer } = await import('./run-server.ts');
    return runServer(config, terminal, { credentials: 'own', stopSignal });
  },
);
