/**
 * The mixed load on a server: immediate and delayed publishes, batches, URL groups, endpoints that fail first or always,
 * callbacks, cancels, and retries from the DLQ. The ledger records everything, so the server may be killed at any time.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SeededRandom } from '../support/seeded-random.ts';
import { type Client, messageIdOf } from './client.ts';
import type { Endpoints } from './endpoints.ts';
import { CALLBACK_RETRIES, type CallbackKind, type Ledger } from './ledger.ts';
import { newTag, publishBatch, publishTagged, recordAnswer } from './publishing.ts';

export interface Load {
  ledger: Ledger;
  endpoints: Endpoints;
  random: SeededRandom;
  /** The number of concurrent operations of the mixed load, with pauses of up to `pauseMs` between them. */
  workers: number;
  pauseMs: number;
}

// Milliseconds; the real back-off starts at 12 s, longer than this whole test.
export const FAST_RETRIES = { 'Upstash-Retries': '3', 'Upstash-Retry-Delay': '30' };
export const DIES_SOON = { 'Upstash-Retries': '1', 'Upstash-Retry-Delay': '20' };

/** The number of operations of each kind, of a hundred. */
const WEIGHTS = {
  now: 34,
  later: 15,
  batch: 9,
  flaky: 10,
  dead: 7,
  told: 12,
  group: 5,
  changeGroup: 1,
  cancel: 4,
  retryDead: 3,
};

const GROUP = 'everyone';

/** Creates the group, which exists in all incarnations, with one or two endpoints. */
export async function prepareMixedLoad({ endpoints }: Load, client: Client): Promise<void> {
  const reply = await changeEndpoints(client, 'POST', [endpoints.ok, endpoints.alsoOk]);
  if (reply !== 'ok') throw new Error(`the group was not made: ${reply}`);
}

/** Runs until `signal` aborts, and then until the last operation in flight has a response or has lost its connection. */
export async function runMixedLoad(load: Load, client: Client, signal: AbortSignal): Promise<void> {
  const cancellable: string[] = [];
  const work = async () => {
    while (!signal.aborted) {
      await someOperation(load, client, cancellable);
      await sleep(load.random.int(1, load.pauseMs));
    }
  };
  await Promise.all(Array.from({ length: load.workers }, work));
}

async function someOperation(load: Load, client: Client, cancellable: string[]): Promise<void> {
  const { endpoints, random } = load;
  switch (random.weighted(WEIGHTS)) {
    case 'now':
      return void (await publish(load, client, endpoints.ok));
    case 'later': {
      const id = await publish(load, client, endpoints.ok, { 'Upstash-Delay': `0.${random.int(1, 6)}s` });
      if (id !== undefined) cancellable.push(id);
      return;
    }
    case 'batch': {
      const tags = Array.from({ length: random.int(2, 8) }, newTag);
      return publishBatch(load.ledger, client, tags, (body) => ({ destination: endpoints.ok, body }));
    }
    case 'flaky':
      return void (await publish(load, client, endpoints.flaky, FAST_RETRIES));
    case 'dead':
      return void (await publish(load, client, endpoints.dead, DIES_SOON));
    case 'told':
      return publishTold(load, client);
    case 'group':
      return publishToGroup(load, client);
    case 'changeGroup':
      return void (await changeEndpoints(client, random.chance(0.5) ? 'POST' : 'DELETE', [endpoints.alsoOk]));
    case 'cancel':
      return cancel(load, client, cancellable);
    case 'retryDead':
      return retryOneDead(load, client);
  }
}

function publish(
  { ledger }: Load,
  client: Client,
  destination: string,
  headers: Record<string, string> = {},
): Promise<string | undefined> {
  return publishTagged(ledger, client, { path: `/v2/publish/${destination}`, headers });
}

async function publishTold({ ledger, endpoints, random }: Load, client: Client): Promise<void> {
  const [destination, retries] = random.choose([
    [endpoints.ok, {}],
    [endpoints.flaky, FAST_RETRIES],
    [endpoints.dead, DIES_SOON],
  ] as const);
  const kinds = random.choose<CallbackKind[]>([['callback'], ['failureCallback'], ['callback', 'failureCallback']]);
  const urls = [endpoints.told, endpoints.toldTwice, endpoints.neverTold];
  const headers = kinds.map((kind) => callbackHeaders(kind, random.choose(urls)));
  const post = { path: `/v2/publish/${destination}`, headers: Object.assign({ ...retries }, ...headers) };
  await publishTagged(ledger, client, post, (tag) => ledger.callbacksAsked(tag, kinds));
}

/** The headers that request callbacks to `url`, with retries that fit into a test. */
export function callbackHeaders(kind: CallbackKind, url: string): Record<string, string> {
  const name = kind === 'callback' ? 'Upstash-Callback' : 'Upstash-Failure-Callback';
  return { [name]: url, [`${name}-Retries`]: String(CALLBACK_RETRIES), [`${name}-Retry-Delay`]: '20' };
}

async function publishToGroup({ ledger }: Load, client: Client): Promise<void> {
  const tag = newTag();
  ledger.attempted(tag);
  const reply = await client.call('POST', `/v2/publish/${GROUP}`, { 'content-type': 'text/plain' }, tag);
  if (reply.kind === 'ok') for (const answer of reply.json as unknown[]) ledger.acked(tag, messageIdOf(answer));
  else if (reply.kind === 'unknown') ledger.unknown(tag, 2);
  else recordAnswer(ledger, tag, reply, undefined);
}

async function changeEndpoints(client: Client, method: 'POST' | 'DELETE', urls: string[]): Promise<string> {
  const endpoints = urls.map((url) => ({ url }));
  const headers = { 'content-type': 'application/json' };
  const reply = await client.call(method, `/v2/topics/${GROUP}/endpoints`, headers, JSON.stringify({ endpoints }));
  return reply.kind === 'refused' ? JSON.stringify(reply.json) : reply.kind;
}

async function cancel({ ledger }: Load, client: Client, cancellable: string[]): Promise<void> {
  const id = cancellable.pop();
  if (id === undefined) return;
  const reply = await client.call('DELETE', `/v2/messages/${id}`);
  // 404: the message was delivered in the meantime.
  if (reply.kind === 'unknown' || reply.kind === 'ok') ledger.cancelAsked(id);
}

async function retryOneDead({ ledger, endpoints, random }: Load, client: Client): Promise<void> {
  // Rejected callbacks stay in the DLQ, where the final checks expect them.
  const listed = await client.call('GET', `/v2/dlq?count=20&url=${encodeURIComponent(endpoints.dead)}`);
  if (listed.kind !== 'ok') return;
  const { messages } = listed.json as { messages: { dlqId: string; messageId: string; body: string }[] };
  const entry = messages[random.int(0, messages.length - 1)];
  if (entry === undefined) return;
  endpoints.revive(entry.body);
  const reply = await client.call('POST', `/v2/dlq/retry/${entry.dlqId}`);
  if (reply.kind === 'refused') return; // another worker was faster: 404
  ledger.takenFromDlq(entry.messageId, entry.body);
  if (reply.kind === 'ok') ledger.acked(entry.body, messageIdOf(reply.json));
  else ledger.unknown(entry.body);
}
