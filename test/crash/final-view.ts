/** Asks a quiet server what it says about every message: its DLQ and its logs, page by page. */
import type { Client } from './client.ts';
import type { FinalView } from './ledger.ts';
import { pages } from './reading.ts';

const ENDINGS = new Set(['DELIVERED', 'FAILED', 'CANCELED']);
const OUTCOMES = new Set(['DELIVERED', 'ERROR']);

export async function readFinalView(client: Client): Promise<FinalView> {
  const dead = new Set<string>();
  for await (const { messageId } of pages<{ messageId: string }>(client, '/v2/dlq?count=100', 'messages')) {
    dead.add(messageId);
  }
  const endings = new Map<string, string[]>();
  const attempts = new Map<string, number>();
  const path = '/v2/events?count=1000&order=earliestFirst';
  for await (const { messageId, state } of pages<{ messageId: string; state: string }>(client, path, 'events')) {
    attempts.set(messageId, (attempts.get(messageId) ?? 0) + (OUTCOMES.has(state) ? 1 : 0));
    if (!ENDINGS.has(state)) continue;
    const states = endings.get(messageId);
    if (states === undefined) endings.set(messageId, [state]);
    else states.push(state);
  }
  return { dead, endings, attempts };
}
