/** Publishes with a new tag, and records any response in the ledger. */
import { type Client, messageIdOf, type Reply } from './client.ts';
import type { Ledger } from './ledger.ts';

/** Tags are unique in the process, across all incarnations of the server. */
let tagsGiven = 0;
export function newTag(): string {
  tagsGiven += 1;
  return `tag-${String(tagsGiven).padStart(6, '0')}`;
}

/** The path and the headers of a publish or an enqueue. */
export interface Post {
  path: string;
  headers?: Record<string, string>;
}

/**
 * Sends a new tag as the body of one message, and returns the id of the message once it is acknowledged. `onTag` receives
 * the tag before the request is sent, since the message may arrive before the response.
 */
export async function publishTagged(
  ledger: Ledger,
  client: Client,
  { path, headers = {} }: Post,
  onTag: (tag: string) => void = () => {},
): Promise<string | undefined> {
  const tag = newTag();
  ledger.attempted(tag);
  onTag(tag);
  const reply = await client.call('POST', path, { 'content-type': 'text/plain', ...headers }, tag);
  return recordAnswer(ledger, tag, reply, reply.kind === 'ok' ? reply.json : undefined);
}

/** The contract rejects nothing in these loads, so any response except 2xx and 503 is a finding. */
export function recordAnswer(ledger: Ledger, tag: string, reply: Reply, answer: unknown): string | undefined {
  if (reply.kind === 'ok') {
    const id = messageIdOf(answer);
    ledger.acked(tag, id);
    return id;
  }
  if (reply.kind === 'unknown') ledger.unknown(tag);
  else if (reply.status !== 503) {
    throw new Error(`a publish was answered ${reply.status} ${JSON.stringify(reply.json)}`);
  }
  return undefined;
}

/** Publishes items as one batch, each with its own tag, in the order of the tags. */
export async function publishBatch(
  ledger: Ledger,
  client: Client,
  tags: readonly string[],
  itemOf: (tag: string) => object,
): Promise<void> {
  for (const tag of tags) ledger.attempted(tag);
  const body = JSON.stringify(tags.map(itemOf));
  const reply = await client.call('POST', '/v2/batch', { 'content-type': 'application/json' }, body);
  const answers = reply.kind === 'ok' && Array.isArray(reply.json) ? reply.json : [];
  tags.forEach((tag, index) => void recordAnswer(ledger, tag, reply, answers[index]));
}
