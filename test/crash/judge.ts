/** Reads every message and lane from servers that have no more work, and compares them with the ledger. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Broken, check, type FinalView, type Verdict } from './checks.ts';
import type { Client } from './client.ts';
import { LANES } from './lane-load.ts';
import type { Ledger } from './ledger.ts';
import { answerOf, pages } from './reading.ts';

export interface Judgement extends Omit<Verdict, 'broken'> {
  broken: Verdict['broken'] & Broken;
  /** Messages without a final state within the time limit. */
  unsettled: string[];
}

const ENDINGS = new Set(['DELIVERED', 'FAILED', 'CANCELED']);
const OUTCOMES = new Set(['DELIVERED', 'ERROR']);

/** Must be called after the time in which messages are expected to end. Waits up to `settleLimitMs` longer. */
export async function judge(ledger: Ledger, client: Client, settleLimitMs = 0): Promise<Judgement> {
  const { unsettled, view } = await settle(ledger, client, settleLimitMs);
  const { broken, ...verdict } = check(ledger, view, LANES);
  const waiting = await Promise.all(unsettled.map(async (id) => `${id}, ${await explained(client, id)}`));
  const ofRest = { 'P2 unsettled': waiting, 'P4 busy after all': await busyLanes(client) };
  return { ...verdict, unsettled, broken: { ...broken, ...ofRest } };
}

/** Resolves to the acknowledged or logged messages that had no final state in the logs within the time limit. */
async function settle(
  ledger: Ledger,
  client: Client,
  limitMs: number,
): Promise<{ unsettled: string[]; view: FinalView }> {
  const limit = performance.now() + limitMs;
  for (;;) {
    const view = await readFinalView(client);
    const known = new Set([...ledger.acknowledged(), ...view.attempts.keys()]);
    const unsettled = [...known].filter((id) => !view.endings.has(id));
    if (unsettled.length === 0 || performance.now() > limit) return { unsettled, view };
    await sleep(250);
  }
}

/**
 * Reads a server's view of every message, page by page. The DLQ is read last, so that a message that dies meanwhile is
 * not counted as lost.
 */
async function readFinalView(client: Client): Promise<FinalView> {
  const endings = new Map<string, string[]>();
  const attempts = new Map<string, number>();
  const path = '/v2/events?count=1000&order=earliestFirst';
  for await (const { messageId, state } of pages<{ messageId: string; state: string }>(client, path, 'events')) {
    attempts.set(messageId, (attempts.get(messageId) ?? 0) + (OUTCOMES.has(state) ? 1 : 0));
    if (!ENDINGS.has(state)) continue;
    endings.set(messageId, [...(endings.get(messageId) ?? []), state]);
  }
  const dead = new Set<string>();
  for await (const { messageId } of pages<{ messageId: string }>(client, '/v2/dlq?count=100', 'messages')) {
    dead.add(messageId);
  }
  return { dead, endings, attempts };
}

/** The server's explanation of why the message is waiting. */
async function explained(client: Client, id: string): Promise<string> {
  return JSON.stringify(await client.call('GET', `/v2/messages/${id}/explain`));
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

/** Queues and keys that report work although every message has ended: none, unless a permit leaked. */
async function busyLanes(client: Client): Promise<string[]> {
  const queues = (await answerOf(client, '/v2/queues')) as QueueView[];
  const { flowControls } = (await answerOf(client, '/v2/flowControl')) as { flowControls: KeyView[] };
  return [
    ...queues.filter(({ lag }) => lag > 0).map(({ name, lag }) => `queue ${name}: lag ${lag}`),
    ...flowControls
      .filter(({ waitListSize, parallelismCount }) => waitListSize + parallelismCount > 0)
      .map((key) => `key ${key.flowControlKey}: ${key.waitListSize} wait, ${key.parallelismCount} in flight`),
  ];
}
