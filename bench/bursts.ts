/**
 * Sends alternating bursts to two servers. Both run throughout, and each burst is short, so that slow and fast phases of the
 * machine affect both alike.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSeconds, type ListeningProcess } from './child-process.ts';
import { publishAll } from './load.ts';
import { type Receiver, startReceiver } from './receiver-process.ts';
import { median } from './statistics.ts';
import { DEVELOPMENT_TOKEN } from './waypost-process.ts';

export interface BurstsOptions {
  rounds: number;
  /** Messages per burst. */
  messages: number;
  /** Messages that each server delivers before the first round. */
  warmUpMessages: number;
  /** CPU time in this period after a burst is counted with the burst. */
  afterMs: number;
  onRound?: (first: Burst, second: Burst) => void;
}

export interface Burst {
  perSecond: number;
  /** CPU time of the server in seconds. */
  cpu: number;
  missing: number;
}

const DELIVERY_LIMIT_MS = 60_000;

/** The bursts of each server, in the order of the rounds. */
export async function alternateBursts(
  servers: readonly [ListeningProcess, ListeningProcess],
  { rounds, messages, warmUpMessages, afterMs, onRound }: BurstsOptions,
): Promise<[Burst[], Burst[]]> {
  const receiver = await startReceiver('ordinary');
  const [first, second] = servers;
  const bursts: [Burst[], Burst[]] = [[], []];
  try {
    for (const server of servers) await deliver(server, receiver, warmUpMessages, afterMs);
    for (let round = 1; round <= rounds; round += 1) {
      const inOrder = [
        async () => bursts[0].push(await deliver(first, receiver, messages, afterMs)),
        async () => bursts[1].push(await deliver(second, receiver, messages, afterMs)),
      ];
      for (const burst of round % 2 === 0 ? inOrder.reverse() : inOrder) await burst();
      const [ofFirst, ofSecond] = [bursts[0].at(-1), bursts[1].at(-1)];
      if (ofFirst && ofSecond) onRound?.(ofFirst, ofSecond);
    }
  } finally {
    await receiver.end();
  }
  return bursts;
}

/** The median, over the rounds, of the ratio of the first server's figure to the second's. */
export function medianRatio([first, second]: readonly [Burst[], Burst[]], figure: 'perSecond' | 'cpu'): number {
  return median(first.map((burst, at) => burst[figure] / (second[at]?.[figure] ?? Number.NaN)));
}

export function missingOf(bursts: readonly [Burst[], Burst[]]): number {
  return bursts.flat().reduce((sum, { missing }) => sum + missing, 0);
}

async function deliver(
  server: ListeningProcess,
  receiver: Receiver,
  messages: number,
  afterMs: number,
): Promise<Burst> {
  const target = {
    ...{ peers: 'ordinary' as const, url: server.url, token: DEVELOPMENT_TOKEN },
    destination: `${receiver.url}/`,
  };
  await receiver.expect(messages);
  const cpuBefore = cpuSeconds(server.pid);
  const { startedNs } = await publishAll(target, messages);
  await receiver.complete(DELIVERY_LIMIT_MS);
  const { lastArrivalNs, distinct } = await receiver.report();
  await sleep(afterMs);
  return {
    perSecond: messages / (Number(lastArrivalNs - startedNs) / 1e9),
    cpu: cpuSeconds(server.pid) - cpuBefore,
    missing: messages - distinct,
  };
}
