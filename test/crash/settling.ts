/** Waits for a server that is left in peace to bring every acknowledged message to its end. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from './client.ts';
import { readFinalView } from './final-view.ts';
import type { Ledger } from './ledger.ts';

// The longest chain after a fault: a delay of 0.6 s and three retries of 30 ms; the rest is for a busy machine.
const LIMIT_MS = 20_000;

/** Resolves with those acknowledged messages that had no ending in the logs in time: none, if all is well. */
export async function untilSettled(ledger: Ledger, client: Client, limitMs = LIMIT_MS): Promise<string[]> {
  const limit = performance.now() + limitMs;
  for (;;) {
    const { endings } = await readFinalView(client);
    const open = ledger.acknowledged().filter((id) => !endings.has(id));
    if (open.length === 0 || performance.now() > limit) return open;
    await sleep(250);
  }
}
