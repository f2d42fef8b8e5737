/** `waypost demo`: a server, an endpoint and the official client, and what becomes of a few messages. */

import { DEVELOPMENT_ACCOUNTS } from '../config/development.ts';
import { settingsHelp } from '../config/page.ts';
import { parseConfig } from '../config/parse.ts';
import type { Clock } from '../engine/ports.ts';
import { startServer } from '../server.ts';
import { systemClock } from '../system.ts';
import { createEventLog } from '../telemetry/event-log.ts';
import { type Command, CommandFailed, EXIT, type Terminal } from './command.ts';

const MINUTE_MS = 60_000;
/** About what the scenes before the schedule take. */
const UNTIL_MINUTE_MS = 8_000;

export const demo: Command = {
  summary: 'watch a few messages live their lives, then end',
  help: () =>
    `Usage: waypost demo [options]

Starts a server in memory and a small endpoint, both on free ports of this machine, publishes messages with the official
client and prints each state they go through. The exit code is 0 when every message ended as it should.

${settingsHelp(true)}`,
  async run(args, terminal) {
    const { Client } = await loadClient();
    const config = parseConfig({ ...terminal.env, PORT: '0' }, [...args, '--memory'], { dev: true });
    const log = createEventLog({ format: 'pretty', level: 'warn', color: terminal.color, write: terminal.complain });
    const { Narrator } = await import('./demo/narrator.ts');
    const { startReceiver } = await import('./demo/receiver.ts');
    const { play } = await import('./demo/scenes.ts');

    const clock = shortlyBeforeMinute(systemClock);
    const server = await startServer(config, { log, credentials: 'development', onFatal: fail, clock });
    const receiver = await startReceiver();
    const client = new Client({ baseUrl: server.url, token: DEVELOPMENT_ACCOUNTS[0].token });
    const write = (line: string): void => terminal.print(`${line}\n`);
    write(`Waypost listens on ${server.url}, the endpoint on ${receiver.url}.`);
    try {
      await play({ client, receiver, narrator: new Narrator(client, write, terminal.color), write });
      write('\nEvery message ended as it should.');
      return EXIT.ok;
    } catch (error) {
      return tellFailure(error, terminal);
    } finally {
      await server.stop(config.drainLimitMs);
      await receiver.close();
    }
  },
};

/** The client is a dependency of the demo alone: an installation may leave it out. */
async function loadClient(): Promise<typeof import('@upstash/qstash')> {
  try {
    return await import('@upstash/qstash');
  } catch {
    throw new CommandFailed('the demo publishes with the official client: npm install @upstash/qstash');
  }
}

/** `clock` put forward by less than a minute, so that nobody has to wait long for the next minute to begin. */
function shortlyBeforeMinute(clock: Clock): Clock {
  const aheadMs = MINUTE_MS - UNTIL_MINUTE_MS - (clock.nowMs() % MINUTE_MS);
  return { ...clock, nowMs: () => clock.nowMs() + Math.max(0, aheadMs) };
}

function fail(error: Error): never {
  throw error;
}

function tellFailure(error: unknown, terminal: Terminal): number {
  terminal.complain(`waypost: the demo failed: ${error instanceof Error ? error.message : String(error)}\n`);
  return EXIT.failed;
}
