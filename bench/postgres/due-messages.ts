/** A store without a server, filled with due messages through its own methods. */

import { randomBytes } from 'node:crypto';
import type { NewMessage } from '../../src/engine/model.ts';
import { mintMessageId } from '../../src/protocol/ids.ts';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import type { Store } from '../../src/store/store.ts';
import { endOfTurn, systemClock } from '../../src/system/system.ts';

/** Opens the store as a server does. Ends the process if the database cannot be trusted. */
export function openBenchStore(url: string): Promise<Store> {
  return openPostgresStore({
    url,
    clock: systemClock,
    sender: randomBytes(6).toString('hex'),
    onFatal: (error) => {
      throw error;
    },
    batch: { endOfTurn },
  });
}

const CONCURRENT_ACCEPTS = 4;
/** Messages per publish. */
const ACCEPT_MESSAGES = 500;
/** Origins that the messages are spread over. */
const ORIGINS = 100;
const BODY = new Uint8Array(200).fill(0x78);

/** Accepts messages of 200 bytes that became due one after the other in the last minutes before `nowMs`. */
export async function storeDue(store: Store, count: number, nowMs: number): Promise<void> {
  const firstKey = await store.messages.reserveNumbers({ count });
  let next = 0;
  const storeSome = async () => {
    while (next < count) {
      const first = next;
      next = Math.min(count, first + ACCEPT_MESSAGES);
      const messages = Array.from({ length: next - first }, (_, index) => {
        const number = first + index;
        return dueMessage(firstKey + number, nowMs - Math.ceil((count - number) / 10));
      });
      await store.messages.accept({ messages, nowMs });
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_ACCEPTS }, storeSome));
}

function dueMessage(key: number, dueAtMs: number): NewMessage {
  const origin = `http://endpoint-${key % ORIGINS}.example`;
  return {
    message: {
      key,
      id: mintMessageId(key, (bytes) => new Uint8Array(randomBytes(bytes))),
      projectId: 1,
      url: `${origin}/hook`,
      origin,
      method: 'POST',
      header: { 'content-type': ['text/plain'] },
      body: BODY,
      createdAtMs: dueAtMs,
      notBeforeMs: dueAtMs,
      settings: { dialect: 'upstash', maxRetries: 3 },
    },
    state: { kind: 'due', dueAtMs },
    events: [{ atMs: dueAtMs, state: 'CREATED' }],
  };
}
