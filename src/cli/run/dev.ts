/** `waypost dev`: the production engine on a local file, with the published credentials that clients use by default. */
import { parseConfig } from '../../config/parse.ts';
import type { RunningServer } from '../../server/server.ts';
import { CommandFailed, EXIT } from '../command.ts';
import { commandWithSettings } from '../command-with-settings.ts';
import { nextSignal } from '../signal.ts';

export const dev = commandWithSettings(
  'dev',
  {
    about: `Usage: waypost dev [--force] [--virtual-time] [options]

Starts a server with published credentials that may deliver to this machine, and prints lines for your .env file.
Messages survive a restart, in the data folder; with --memory they do not.`,
    options: {
      '--force': 'Listen on an address that other machines can reach, although the credentials are public.',
      '--virtual-time': `Stop the clock and advance it by requests, for tests that skip a week: POST /v2/waypost/time/advance with
        {"duration":"7d"}, or /v2/waypost/time/run-until-idle. Everything is kept in memory.`,
    },
    settings: 'dev',
    example: 'dev --port 9000 --memory',
  },
  async (parsed, terminal) => {
    const { settings } = parsed;
    const isVirtual = parsed.has('virtual-time');
    const virtual = isVirtual ? await import('./virtual-time.ts') : undefined;
    const config = virtual?.virtualConfig(terminal.env, settings) ?? parseConfig(terminal.env, settings, { dev: true });
    if (!isLoopback(config.host) && !parsed.has('force')) {
      throw new CommandFailed(
        `dev listens on loopback addresses only, not on ${config.host}, since its credentials are public; use "waypost serve", or --force`,
        EXIT.usage,
      );
    }
    const stopSignal = nextSignal(); // before the import, which takes a while
    const { runServer } = await import('./run-server.ts');
    const { describeDataLocation } = await import('../../admin/open-store.ts');
    return runServer(config, terminal, {
      credentials: 'development',
      stopSignal,
      announce: (server) => welcome(server, describeDataLocation(config), config.docsUrl, isVirtual),
      ...(virtual && { start: virtual.startVirtual }),
    });
  },
);

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** The text after the start: the address of the console, and lines for the `.env` file of the user's app. */
function welcome(
  { url, development }: RunningServer,
  store: string | undefined,
  docsUrl: string,
  isVirtual: boolean,
): string {
  if (development === undefined) throw new Error('a development server has development credentials');
  const { token, signingKeys } = development;
  return `
Waypost is ready for development${store === undefined ? '; everything is lost when it stops' : ''}. For your app's .env:

QSTASH_URL=${url}
QSTASH_TOKEN=${token}
QSTASH_CURRENT_SIGNING_KEY=${signingKeys.current}
QSTASH_NEXT_SIGNING_KEY=${signingKeys.next}

Console: ${url}/console
${docsUrl === '' ? '' : `Documentation: ${docsUrl}\n`}${store === undefined ? '' : `Data: ${store}\n`}${isVirtual ? `The clock is stopped; POST ${url}/v2/waypost/time/advance advances it.\n` : ''}
`;
}
