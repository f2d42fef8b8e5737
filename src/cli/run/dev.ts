/**
 * `waypost dev`: the production engine on a local file, with the published credentials that clients have as default.
 */
import { parseConfig } from '../../config/parse.ts';
import type { RunningServer } from '../../server/server.ts';
import { CommandFailed, EXIT } from '../command.ts';
import { configured } from '../configured.ts';
import { nextSignal } from '../signal.ts';

export const dev = configured(
  'dev',
  {
    about: `Usage: waypost dev [--force] [--virtual-time] [options]

Starts a server whose credentials everybody knows and that may deliver to this machine. Prints lines for your .env.
What it accepts survives a restart, in the data folder; with --memory nothing does.`,
    options: {
      '--force': 'Listen on an address that others can reach, although they know the credentials.',
      '--virtual-time': `Time stands still until a request lets it pass, for tests that skip a week: POST /v2/waypost/time/advance with
        {"duration":"7d"}, or /v2/waypost/time/run-until-idle. Keeps everything in memory.`,
    },
    settings: 'dev',
    example: 'dev --port 9000 --memory',
  },
  async (given, terminal) => {
    const { settings } = given;
    const isVirtual = given.has('virtual-time');
    const virtual = isVirtual ? await import('./virtual-time.ts') : undefined;
    const config = virtual?.virtualConfig(terminal.env, settings) ?? parseConfig(terminal.env, settings, { dev: true });
    if (!isLoopback(config.host) && !given.has('force')) {
      throw new CommandFailed(
        `dev listens on loopback addresses only, not on ${config.host}: everybody knows its credentials; use "waypost serve", or --force`,
        EXIT.usage,
      );
    }
    const signalled = nextSignal(); // heard from now on: the next line takes a while
    const { runServer } = await import('./run-server.ts');
    const { keptIn } = await import('../../admin/open-store.ts');
    return runServer(config, terminal, {
      credentials: 'development',
      signalled,
      announce: (server) => welcome(server, keptIn(config), config.docsUrl, isVirtual),
      ...(virtual && { start: virtual.startVirtual }),
    });
  },
);

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Lines to paste into the `.env` of the app that publishes and receives. */
function welcome(
  { url, development }: RunningServer,
  place: string | undefined,
  docsUrl: string,
  isVirtual: boolean,
): string {
  if (development === undefined) throw new Error('a development server has development credentials');
  const { token, signingKeys } = development;
  return `
Waypost is ready for development${place === undefined ? '; nothing will survive its end' : ''}. For your app's .env:

QSTASH_URL=${url}
QSTASH_TOKEN=${token}
QSTASH_CURRENT_SIGNING_KEY=${signingKeys.current}
QSTASH_NEXT_SIGNING_KEY=${signingKeys.next}

Console: ${url}/console
${docsUrl === '' ? '' : `Documentation: ${docsUrl}\n`}${place === undefined ? '' : `Kept in: ${place}\n`}${isVirtual ? `Time stands still until POST ${url}/v2/waypost/time/advance lets it pass.\n` : ''}
`;
}
