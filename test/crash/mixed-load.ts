/**
 * What users do to a server all at once: publish now and later, in batches, to endpoints that fail first or for ever,
 * cancel, and retry from the DLQ. Everything goes into the ledger, so that a kill may come at any moment.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SeededRandom } from '../../src/testing/seeded-random.ts';
import { type Client, messageIdOf, type Reply } from './client.ts';
import type { Endpoints } from './endpoints.ts';
import type { Ledger } from './ledger.ts';

export interface MixedLoad {
  ledger: Ledger;
  endpoints: Endpoints;
  random: SeededRandom;
  /** How many operations are under way at any time. */
  workers: number;
}

// Milliseconds; the real back-off starts at 12 s, longer than this whole test.
const FAST_RETRIES = { 'Upstash-Retries': '3', 'Upstash-Retry-Delay': '30' };
const DIES_SOON = { 'Upstash-Retries': '1', 'Upstash-Retry-Delay': '20' };

/** Tags are unique in the process, across all incarnations of the server. */
let tagsGiven = 0;
function newTag(): string {
  tagsGiven += 1;
  return `tag-${String(tagsGiven).padStart(6, '0')}`;
}

/** Runs until `signal` aborts, then until the last operation under way has its answer or has lost its connection. */
export async function runMixedLoad(load: MixedLoad, client: Client, signal: AbortSignal): Promise<void> {
  const cancellable: string[] = [];
  const work = async () => {
    while (!signal.aborted) {
      await someOperation(load, client, cancellable);
      await sleep(load.random.int(1, 6));
    }
  };
  await Promise.all(Array.from({ length: load.workers }, work));
}

async function someOperation(load: MixedLoad, client: Client, cancellable: string[]): Promise<void> {
  const { endpoints, random } = load;
  const dice = random.int(1, 100);
  if (dice <= 45) await publish(load, client, endpoints.ok);
  else if (dice <= 62) {
    const id = await publish(load, client, endpoints.ok, { 'Upstash-Delay': `0.${random.int(1, 6)}s` });
    if (id !== undefined) cancellable.push(id);
  } else if (dice <= 72) await publishBatch(load, client);
  else if (dice <= 85) await publish(load, client, endpoints.flaky, FAST_RETRIES);
  else if (dice <= 93) await publish(load, client, endpoints.dead, DIES_SOON);
  else if (dice <= 97) await cancel(load, client, cancellable);
  else await retryOneDead(load, client);
}

async function publish(
  load: MixedLoad,
  client: Client,
  destination: string,
  headers: Record<string, string> = {},
): Promise<string | undefined> {
  const tag = newTag();
  load.ledger.attempted(tag);
  const reply = await client.publish(destination, tag, headers);
  return record(load.ledger, tag, reply, reply.kind === 'ok' ? reply.json : undefined);
}

async function publishBatch(load: MixedLoad, client: Client): Promise<void> {
  const tags = Array.from({ length: load.random.int(2, 8) }, newTag);
  for (const tag of tags) load.ledger.attempted(tag);
  const items = tags.map((tag) => ({ destination: load.endpoints.ok, body: tag }));
  const reply = await client.call('POST', '/v2/batch', { 'content-type': 'application/json' }, JSON.stringify(items));
  const answers = reply.kind === 'ok' && Array.isArray(reply.json) ? reply.json : [];
  tags.forEach((tag, i) => void record(load.ledger, tag, reply, answers[i]));
}

/** Nothing in this load is refused by the contract: any other answer than 2xx or 503 is a finding. */
function record(ledger: Ledger, tag: string, reply: Reply, answer: unknown): string | undefined {
  if (reply.kind === 'ok') {
    const id = messageIdOf(answer);
    ledger.acked(tag, id);
    return id;
  }
  if (reply.kind === 'unknown') ledger.unknown(tag);
  else if (reply.status !== 503)
    throw new Error(`a publish was answered ${reply.status} ${JSON.stringify(reply.json)}`);
  return undefined;
}

async function cancel(load: MixedLoad, client: Client, cancellable: string[]): Promise<void> {
  const id = cancellable.pop();
  if (id === undefined) return;
  const reply = await client.call('DELETE', `/v2/messages/${id}`);
  // 404: delivered in the meantime.
  if (reply.kind === 'unknown' || reply.kind === 'ok') load.ledger.cancelAsked(id);
}

async function retryOneDead(load: MixedLoad, client: Client): Promise<void> {
  const listed = await client.call('GET', '/v2/dlq?count=20');
  if (listed.kind !== 'ok') return;
  const { messages } = listed.json as { messages: { dlqId: string; messageId: string; body: string }[] };
  const entry = messages[load.random.int(0, messages.length - 1)];
  if (entry === undefined) return;
  load.endpoints.revive(entry.body);
  const reply = await client.call('POST', `/v2/dlq/retry/${entry.dlqId}`);
  if (reply.kind === 'refused') return; // another worker was faster: 404
  load.ledger.takenFromDlq(entry.messageId, entry.body);
  if (reply.kind === 'ok') load.ledger.acked(entry.body, messageIdOf(reply.json));
  else load.ledger.unknown(entry.body);
}
