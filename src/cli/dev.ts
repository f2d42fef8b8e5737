/**
 * `waypost dev`: the production engine on a local file, with the published credentials that clients have as default.
 */
import { settingsHelp } from '../config/page.ts';
import { parseConfig } from '../config/parse.ts';
import type { RunningServer } from '../server/server.ts';
import { type Command, CommandFailed, EXIT, takeSwitch } from './command.ts';

export const dev: Command = {
  help: () =>
    `Usage: waypost dev [--force] [options]

Starts a server whose credentials everybody knows and that may deliver to this machine. Prints lines for your .env.
What it accepts survives a restart, in the data folder; with --memory nothing does.

  --force
      Listen on an address that others can reach, although they know the credentials.

${settingsHelp(true)}`,
  async run(args, terminal) {
    const { given: force, rest } = takeSwitch(args, '--force');
    const config = parseConfig(terminal.env, rest, { dev: true });
    if (!isLoopback(config.host) && !force) {
      throw new CommandFailed(
        `dev listens on loopback addresses only, not on ${config.host}: everybody knows its credentials; use "waypost serve", or --force`,
        EXIT.usage,
      );
    }
    const { runServer } = await import('./run-server.ts');
    return runServer(config, terminal, {
      credentials: 'development',
      announce: (server) => welcome(server, config.memory),
    });
  },
};

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Lines to paste into the `.env` of the app that publishes and receives. */
function welcome({ url, development }: RunningServer, memory: boolean): string {
  if (development === undefined) throw new Error('a development server has development credentials');
  const { token, signingKeys } = development;
  return `
Waypost is ready for development${memory ? '; nothing will survive its end' : ''}. For your app's .env:

QSTASH_URL=${url}
QSTASH_TOKEN=${token}
QSTASH_CURRENT_SIGNING_KEY=${signingKeys.current}
QSTASH_NEXT_SIGNING_KEY=${signingKeys.next}

Console: ${url}/console

`;
}
