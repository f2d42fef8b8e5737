/**
 * `waypost demo`: starts a server and an endpoint, publishes a few messages, triggers a few workflow runs, and shows
 * what happens to them. It uses the official clients. With `--keep` the server goes on, for its console.
 */
import { DEVELOPMENT_ACCOUNTS } from '../config/development.ts';
import { parseConfig } from '../config/parse.ts';
import type { Machine } from '../engine/ports.ts';
import { CommandFailed, EXIT, type Terminal } from './command.ts';
import { configured } from './configured.ts';
import { nextSignal } from './signal.ts';

const MINUTE_MS = 60_000;
/** About as long as the scenes before the schedule take. */
const UNTIL_MINUTE_MS = 8_000;

export const demo = configured(
  'demo',
  {
    about: `Usage: waypost demo [--keep] [options]

Starts a server in memory and small endpoints, all on free ports of this machine, publishes messages and triggers
workflows with the official clients, and prints each state and step they go through. The exit code is 0 when all ended as
they should.

The settings of "waypost dev" are taken too; "waypost dev --help" lists them.`,
    options: {
      '--keep': `Do not end: go on publishing, leave some messages and runs waiting and some failed, and print the address of the
        console, until Ctrl-C.`,
    },
    settings: 'unlisted',
    example: 'demo --keep',
  },
  async (given, terminal) => {
    const keeps = given.has('keep');
    const { Client, WorkflowClient } = await loadClients();
    const config = parseConfig({ ...terminal.env, PORT: '0' }, [...given.settings, '--memory'], { dev: true });
    const { startServer } = await import('../server/server.ts');
    const { systemClock } = await import('../system/system.ts');
    const { createEventLog } = await import('../telemetry/event-log.ts');
    const log = createEventLog({ format: 'pretty', level: 'error', color: terminal.color, write: terminal.complain });
    const { Narrator } = await import('./demo/narrator.ts');
    const { startReceiver } = await import('./demo/receiver.ts');
    const { play } = await import('./demo/scenes.ts');
    const { begin, goOn } = await import('./demo/life.ts');
    const { startWorkflowApp } = await import('./demo/workflow-app.ts');

    // A person who looks at the console knows what time it is.
    const clock = keeps ? systemClock : shortlyBeforeMinute(systemClock);
    const server = await startServer(config, { log, credentials: 'development', onFatal: fail, clock });
    const receiver = await startReceiver();
    const [{ token }] = DEVELOPMENT_ACCOUNTS;
    const app = await startWorkflowApp({ url: receiver.url, nowMs: () => clock.wallMs() }, { url: server.url, token });
    const client = new Client({ baseUrl: server.url, token });
    const workflows = new WorkflowClient({ baseUrl: server.url, token });
    const { color } = terminal;
    const write = (line: string): void => terminal.print(`${line}\n`);
    write(`Waypost listens on ${server.url}, the endpoint on ${receiver.url}.`);
    try {
      const narrator = new Narrator(client, write, color);
      const stage = { client, receiver, narrator, write, workflows: { client: workflows, app, color } };
      if (keeps) {
        await begin(stage);
        write(
          `\nThe server goes on, and something is always happening. Ctrl-C ends it.\n\nConsole: ${server.url}/console`,
        );
        await goOn(stage, nextSignal());
      } else {
        await play(stage);
        write('\nEvery message and every run ended as it should.');
      }
      return EXIT.ok;
    } catch (error) {
      return tellFailure(error, terminal);
    } finally {
      await server.stop(config.drainLimitMs);
      await receiver.close();
      await app.close();
    }
  },
);

interface Clients {
  Client: typeof import('@upstash/qstash').Client;
  WorkflowClient: typeof import('@upstash/workflow').Client;
}

/** Only the demo depends on the clients: an installation may leave them out. */
async function loadClients(): Promise<Clients> {
  try {
    const { Client } = await import('@upstash/qstash');
    const { Client: WorkflowClient } = await import('@upstash/workflow');
    return { Client, WorkflowClient };
  } catch {
    throw new CommandFailed(
      'the demo uses the official clients and their zod: npm install @upstash/qstash @upstash/workflow zod',
    );
  }
}

/** `clock` set forward by less than a minute, so that the next minute begins soon. */
function shortlyBeforeMinute(clock: Machine): Machine {
  const aheadMs = Math.max(0, MINUTE_MS - UNTIL_MINUTE_MS - (clock.wallMs() % MINUTE_MS));
  return {
    wallMs: () => clock.wallMs() + aheadMs,
    get elapsedMs() {
      return clock.elapsedMs;
    },
    startTimer: (delayMs, task) => clock.startTimer(delayMs, task),
  };
}

function fail(error: Error): never {
  throw error;
}

function tellFailure(error: unknown, terminal: Terminal): number {
  terminal.complain(`waypost: the demo failed: ${error instanceof Error ? error.message : String(error)}\n`);
  return EXIT.failed;
}
