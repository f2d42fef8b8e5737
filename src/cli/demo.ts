/**
 * `waypost demo`: starts a server and an endpoint, publishes messages and triggers workflow runs with the official
 * clients, and prints the states of the messages and runs. With `--keep` the server continues to run, for its console.
 */
import { DEVELOPMENT_ACCOUNTS } from '../config/development.ts';
import { parseConfig } from '../config/parse.ts';
import type { Machine } from '../engine/ports.ts';
import { CommandFailed, EXIT, type Terminal } from './command.ts';
import { commandWithSettings } from './command-with-settings.ts';
import { nextSignal } from './signal.ts';

const MINUTE_MS = 60_000;
/** Approximate duration of the scenes before the schedule. */
const UNTIL_MINUTE_MS = 8_000;

export const demo = commandWithSettings(
  'demo',
  {
    about: `Usage: waypost demo [--keep] [options]

Starts a server in memory and small endpoints on free ports of this machine, publishes messages and triggers workflows
with the official clients, and prints each of their states and steps. The exit code is 0 when all of them ended as expected.

Accepts the settings of "waypost dev"; "waypost dev --help" lists them.`,
    options: {
      '--keep': `Continue to publish until Ctrl-C, keep some messages and runs waiting, dead or failed, and print the address of the
        console.`,
    },
    settings: 'unlisted',
    example: 'demo --keep',
  },
  async (parsed, terminal) => {
    const keeps = parsed.has('keep');
    const { Client, WorkflowClient } = await loadClients();
    const config = parseConfig({ ...terminal.env, PORT: '0' }, [...parsed.settings, '--memory'], { dev: true });
    const { startServer } = await import('../server/server.ts');
    const { systemClock } = await import('../system/system.ts');
    const { createEventLog } = await import('../telemetry/event-log.ts');
    const log = createEventLog({ format: 'pretty', level: 'error', color: terminal.color, write: terminal.printError });
    const { Narrator } = await import('./demo/narrator.ts');
    const { startReceiver } = await import('./demo/receiver.ts');
    const { play } = await import('./demo/scenes.ts');
    const { startActivity, keepPublishing } = await import('./demo/activity.ts');
    const { startWorkflowApp } = await import('./demo/workflow-app.ts');

    // With `--keep`, the console shows the real time. Otherwise the clock is ahead, so that the schedule triggers soon.
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
        await startActivity(stage);
        write(
          `\nThe server continues to run, and the demo publishes more messages. Press Ctrl-C to stop.\n\nConsole: ${server.url}/console`,
        );
        await keepPublishing(stage, nextSignal());
      } else {
        await play(stage);
        write('\nEvery message and every run ended as expected.');
      }
      return EXIT.ok;
    } catch (error) {
      return reportFailure(error, terminal);
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

/** Loads the official clients. Only the demo needs the clients, so an installation may omit these packages. */
async function loadClients(): Promise<Clients> {
  try {
    const { Client } = await import('@upstash/qstash');
    const { Client: WorkflowClient } = await import('@upstash/workflow');
    return { Client, WorkflowClient };
  } catch {
    throw new CommandFailed(
      'the demo needs the official clients and zod: npm install @upstash/qstash @upstash/workflow zod',
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

function reportFailure(error: unknown, terminal: Terminal): number {
  terminal.printError(`waypost: the demo failed: ${error instanceof Error ? error.message : String(error)}\n`);
  return EXIT.failed;
}
