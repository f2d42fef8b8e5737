/**
 * Several stores on one PostgreSQL at once, where locks must guarantee what SQLite gets from a single writer. Each
 * worker accepts, claims, settles, retries, cancels and pauses at random; every read must find the limits kept.
 */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BacklogKey } from '../../src/engine/lanes/backlog-key.ts';
import type { Claimed, NewMessage } from '../../src/engine/model.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { StoreLimits } from '../../src/engine/stores.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import { checkInvariants } from '../../src/store/operations/reports/invariants.ts';
import type { Store } from '../../src/store/store.ts';
import { systemClock } from '../../src/system/system.ts';
import { migratedDatabase } from '../support/postgres/shared.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { delivered, PROJECT, settlement, T0, World } from './conformance/world.ts';

const WORKERS = 3;
/** Rounds of accepting, claiming and settling for each worker, which then finishes the rest. */
const ROUNDS = 35;
const KEYS = ['slow', 'fast', 'rated'] as const;
const PARALLELISM = { slow: 1, fast: 4, rated: 3 };
const QUEUES = { single: 1, wide: 3 };

let url: string;
let stores: Store[];
let worlds: World[];

async function openAll(limits?: StoreLimits): Promise<void> {
  url = await migratedDatabase();
  const open = (sender: string) =>
    openPostgresStore({
      url,
      clock: systemClock,
      sender,
      ...(limits && { limits }),
      onFatal: (error) => {
        throw error;
      },
    });
  stores = await Promise.all(Array.from({ length: WORKERS }, (_, index) => open(`worker ${index}`)));
  await stores[0]?.projects.ensureProject({ name: 'one', signingKeys: { current: 'c', next: 'n' }, nowMs: T0 });
  worlds = await Promise.all(stores.map((store) => World.open(async () => store)));
}

async function closeAll(): Promise<void> {
  await Promise.all(stores.map((store) => store.close()));
}

/** The permits that workers know of, noted before a settle starts, so that they are never ahead of the store. */
class Holders {
  readonly #counts = new Map<string, number>();
  readonly violations: string[] = [];

  take(name: string, max: number): void {
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    if (count > max) this.violations.push(`${name} has ${count} of ${max}`);
  }

  leave(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) - 1);
  }
}

function laneOf({ message: { settings } }: Claimed): { name: string; max: number } | undefined {
  if (settings.flowControl) {
    const key = settings.flowControl.key as (typeof KEYS)[number];
    return { name: `key ${key}`, max: PARALLELISM[key] };
  }
  const queue = settings.queueName as keyof typeof QUEUES | undefined;
  return queue && { name: `queue ${queue}`, max: QUEUES[queue] };
}

function anyMessage(world: World, random: SeededRandom): NewMessage {
  const origin = `https://host${random.int(0, 3)}.example.com`;
  switch (random.int(0, 3)) {
    case 0: {
      const key = random.choose(KEYS);
      return world.message({ origin, settings: { flowControl: { key, parallelism: PARALLELISM[key], periodS: 1 } } });
    }
    case 1:
      return world.message({ origin, settings: { queueName: random.choose(['single', 'wide'] as const) } });
    case 2:
      return world.message({ origin, deduplication: { hash: `h${random.int(0, 40)}`, expiresAtMs: T0 + 1e9 } });
    default:
      return world.message({ origin });
  }
}

describe('several workers at once', () => {
  describe.each([
    ['without limits', undefined],
    ['with a limited project', { queuesMax: 0, parallelismMax: 6, messagesPerDayMax: 1e6, journalBytesMax: 0 }],
  ])('%s', (_, limits) => {
    beforeAll(() => openAll(limits));
    afterAll(closeAll);

    it('keep the limits of lanes, lose nothing and settle nothing twice (P2, P4, P6)', async () => {
      await Promise.all(
        Object.entries(QUEUES).map(([name, parallelism]) =>
          stores[0]?.queues.saveQueue({ projectId: PROJECT, name, parallelism, isPaused: false, nowMs: T0 }),
        ),
      );
      const holders = new Holders();
      const accepted = new Map<string, number>();
      const ended = new Map<string, number>();
      const firstOfHash = new Map<string, Set<string>>();
      let stillAccepting = WORKERS;

      const accept = async (store: Store, world: World, random: SeededRandom) => {
        const newMessages = Array.from({ length: random.int(1, 5) }, () => anyMessage(world, random));
        const results = await store.messages.accept({ messages: newMessages, nowMs: T0 });
        for (const [index, { message, deduplication }] of newMessages.entries()) {
          const result = results[index];
          if (result?.kind === 'accepted') accepted.set(message.id, message.key);
          if (!deduplication || !result) continue;
          const id = result.kind === 'duplicate' ? result.messageId : message.id;
          firstOfHash.set(deduplication.hash, (firstOfHash.get(deduplication.hash) ?? new Set()).add(id));
        }
      };

      const settle = async (store: Store, world: World, claimed: Claimed, random: SeededRandom): Promise<void> => {
        const lane = laneOf(claimed);
        const { message, claimToken } = claimed;
        const isRetry = claimed.retried === 0 && random.chance(0.2);
        const change = isRetry
          ? {
              next: { kind: 'waiting' as const, dueAtMs: T0, retried: 1 },
              events: [{ atMs: T0, state: 'RETRY' as const }],
            }
          : delivered();
        // A retried message keeps its queue permit, but not its permit of a key.
        if (lane) holders.leave(lane.name);
        const handoff = { worker: 'w', claimToken: world.number(), bytesMax: 1e6 };
        const settled = await store.messages.settle({
          settlement: settlement(message, claimToken, change),
          nowMs: T0,
          handoff,
        });
        if (settled.kind === 'saved' && !isRetry) ended.set(message.id, (ended.get(message.id) ?? 0) + 1);
        if (settled.kind === 'saved' && settled.next) await hold(store, world, settled.next, random);
      };

      const hold = async (store: Store, world: World, claimed: Claimed, random: SeededRandom): Promise<void> => {
        const lane = laneOf(claimed);
        if (lane) holders.take(lane.name, lane.max);
        await new Promise(setImmediate);
        await settle(store, world, claimed, random);
      };

      /** Another worker may lock the logs for longer than it waits: then they are dropped the next time. */
      const dropExpired = async (store: Store): Promise<void> => {
        const limits = {
          logsBeforeMs: 0,
          deadBeforeMs: 0,
          minutesBeforeMs: 0,
          keysUsedBeforeMs: 0,
          nowMs: T0,
          rowsMax: 100,
        };
        await store.retention.dropExpired(limits).catch((error: unknown) => {
          if (!(error instanceof StoreUnavailable)) throw error;
        });
      };

      const work = async (store: Store, world: World, seed: number) => {
        const random = new SeededRandom(seed);
        let rounds = 0;
        let idle = 0;
        const waitingBacklogs = new Set<BacklogKey>();
        while (idle < 30) {
          rounds += 1;
          const isAccepting = rounds < ROUNDS;
          if (rounds === ROUNDS) stillAccepting -= 1;
          const doings: Promise<unknown>[] = [];
          if (isAccepting) doings.push(accept(store, world, random), accept(store, world, random));
          if (isAccepting && random.chance(0.1)) {
            const name = random.choose(['single', 'wide'] as const);
            doings.push(
              store.queues.setQueuePaused({ projectId: PROJECT, name, isPaused: random.chance(0.5), nowMs: T0 }),
            );
          }
          if (rounds === ROUNDS + 1)
            for (const name of ['single', 'wide'])
              doings.push(store.queues.setQueuePaused({ projectId: PROJECT, name, isPaused: false, nowMs: T0 }));
          if (random.chance(0.1)) doings.push(dropExpired(store));
          const lanesFirst = random.chance(0.5);
          const result = await world.claim({
            limit: 8,
            backlogsToServe: [...waitingBacklogs],
            lanesFirst,
            defaultCapacity: 3,
          });
          for (const line of result.waitingBacklogs) waitingBacklogs.add(line);
          for (const line of result.emptied) waitingBacklogs.delete(line);
          doings.push(...result.claimed.map((claimed) => hold(store, world, claimed, random)));
          await Promise.all(doings);
          idle = result.claimed.length === 0 && stillAccepting === 0 ? idle + 1 : 0;
          for (const line of await world.waitingBacklogs()) waitingBacklogs.add(line);
        }
      };

      await Promise.all(stores.map((store, index) => work(store, worlds[index] as World, 100 + index)));
      expect(holders.violations).toEqual([]);
      expect([...firstOfHash.values()].filter((ids) => ids.size !== 1)).toEqual([]);
      expect([...ended.values()].filter((times) => times !== 1)).toEqual([]);
      expect([...accepted.keys()].filter((id) => !ended.has(id))).toEqual([]);
      expect(accepted.size).toBeGreaterThan(300);
      const driver = new PostgresDriver({
        url,
        connectionsMax: 1,
        timeoutMs: 60_000,
        prepares: true,
        clock: systemClock,
      });
      const findings = await driver.read(checkInvariants);
      expect(findings.filter(({ offenders }) => offenders.length > 0)).toEqual([]);
      await driver.close();
    });
  });
});
