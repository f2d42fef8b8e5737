/** Waits for a server that is left in peace to bring every message to its end, and asks whether its lanes are empty. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from './client.ts';
import { readFinalView } from './final-view.ts';
import type { Ledger } from './ledger.ts';
import { answerOf } from './reading.ts';

// What piled up in a queue goes out one by one, retries and callbacks included, and what a rate allows only so many in a
// second: some seconds each. Shorter than a minute, after which retention would tidy up what nobody else does.
const LIMIT_MS = 40_000;

/** Resolves with those messages, acknowledged or logged, that had no ending in the logs in time: none, if all is well. */
export async function untilSettled(ledger: Ledger, client: Client, limitMs = LIMIT_MS): Promise<string[]> {
  const limit = performance.now() + limitMs;
  for (;;) {
    const { endings, attempts } = await readFinalView(client);
    const known = new Set([...ledger.acknowledged(), ...attempts.keys()]);
    const open = [...known].filter((id) => !endings.has(id));
    if (open.length === 0 || performance.now() > limit) return open;
    await sleep(250);
  }
}

interface QueueView {
  name: string;
  lag: number;
}

interface KeyView {
  flowControlKey: string;
  waitListSize: number;
  parallelismCount: number;
}

/** Queues and keys that say they have work, although every message has ended: none, if no slot leaked. */
export async function busyLanes(client: Client): Promise<string[]> {
  const queues = (await answerOf(client, '/v2/queues')) as QueueView[];
  const { flowControls } = (await answerOf(client, '/v2/flowControl')) as { flowControls: KeyView[] };
  return [
    ...queues.filter(({ lag }) => lag > 0).map(({ name, lag }) => `queue ${name}: lag ${lag}`),
    ...flowControls
      .filter(({ waitListSize, parallelismCount }) => waitListSize + parallelismCount > 0)
      .map((key) => `key ${key.flowControlKey}: ${key.waitListSize} wait, ${key.parallelismCount} in flight`),
  ];
}
