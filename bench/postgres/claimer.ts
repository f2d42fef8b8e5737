/**
 * Claims and settles due messages in a loop: `node claimer.ts <URL> <warm-up> <claims> <messages per claim>`.
 * Reports the durations over its IPC channel.
 */
import { randomBytes } from 'node:crypto';
import type { Claimed } from '../../src/engine/model.ts';
import { systemClock } from '../../src/system/system.ts';
import type { ClaimTimes } from './claims.ts';
import { openBenchStore } from './due-messages.ts';

const [url = '', ...counts] = process.argv.slice(2);
const [warmUpClaims = 0, claims = 0, limit = 0] = counts.map(Number);
const worker = randomBytes(6).toString('hex');
const times: ClaimTimes = { claimMs: [], settleMs: [], claimed: 0 };
const store = await openBenchStore(url);
let token = await store.messages.reserveNumbers({ count: (warmUpClaims + claims) * limit });
// Warm-up: compilation, connections and prepared statements.
for (let count = 0; count < warmUpClaims; count += 1) await settleAll(await claim());
for (let count = 0; count < claims; count += 1) {
  const claimed = await timed(times.claimMs, claim);
  await timed(times.settleMs, () => settleAll(claimed));
  times.claimed += claimed.length;
}
await store.close();
process.send?.(times, () => process.disconnect());

async function timed<T>(durationsMs: number[], work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const result = await work();
  durationsMs.push(performance.now() - startedAt);
  return result;
}

async function claim(): Promise<Claimed[]> {
  const firstToken = token;
  token += limit;
  const { claimed } = await store.messages.claim({
    request: {
      ...{ worker, firstToken, limit, bytesMax: 1e9, capacityByOrigin: {}, defaultCapacity: 256 },
      ...{ due: true, lanesFirst: false, backlogsToServe: [] },
    },
    nowMs: systemClock.nowMs(),
  });
  return claimed;
}

async function settleAll(claimed: readonly Claimed[]): Promise<void> {
  const nowMs = systemClock.nowMs();
  await Promise.all(
    claimed.map(({ message: { key, projectId }, claimToken }) =>
      store.messages.settle({
        settlement: {
          ...{ key, projectId, claimToken },
          change: { next: { kind: 'finished' }, events: [{ atMs: nowMs, state: 'DELIVERED' }] },
        },
        nowMs,
      }),
    ),
  );
}
