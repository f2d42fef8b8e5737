/** Calls everything that a store can do at least once, so that what it sends to its database can be looked at. */
import { lineOf } from '../../src/engine/origin-line.ts';
import type { RunFilter } from '../../src/engine/run-log-store.ts';
import type { Schedule } from '../../src/engine/schedules.ts';
import type { Store } from '../../src/engine/stores.ts';
import { mintMessageId } from '../../src/protocol/ids.ts';
import { appended, begin, beginning, ending, invoked, waiter } from './conformance/run-world.ts';
import { buried, bytes, delivered, PROJECT, settlement, T0, type World } from './conformance/world.ts';

export async function useEverything(world: World): Promise<void> {
  const { store } = world;
  const { message, claimToken } = await world.acceptClaimed({ deduplication: { hash: 'h', expiresAtMs: T0 } });
  await store.settle(settlement(message, claimToken, delivered()), T0);
  const waiting = await world.accept();
  await world.claim({ unpark: [lineOf(PROJECT, waiting.origin)] });
  await world.claim({ roomByOrigin: {}, defaultRoom: 0 });
  await store.releaseAll(T0);
  await store.release([{ key: waiting.key, projectId: PROJECT, claimToken: 1 }], T0);
  await store.parkedLines();
  await store.find(PROJECT, waiting.id, T0);
  await store.standingOf(PROJECT, waiting.id, T0);
  await store.cancelById(PROJECT, [waiting.id], T0);
  await world.acceptClaimed();
  await store.cancelMatching(PROJECT, { label: ['x'], fromMs: T0, toMs: T0 }, 10, T0);
  await store.cancelMatching(PROJECT, {}, 10, T0);
  const dead = [await world.bury(T0), await world.bury(T0)];
  const orders = ['latestFirst', 'earliestFirst'] as const;
  const filters = [{}, { label: ['x'] }, { messageId: [message.id] }, { fromMs: T0, toMs: T0, url: ['u'] }];
  for (const order of orders) {
    for (const filter of filters) {
      for (const cursor of [undefined, `${T0}-5`]) {
        const page = cursor === undefined ? { count: 5, order } : { count: 5, order, cursor };
        await store.listLogs(PROJECT, filter, page);
        await store.listLogs(PROJECT, { ...filter, state: ['FAILED'] }, page);
        await store.listDead(PROJECT, filter, page);
        await store.listDead(PROJECT, { ...filter, responseStatus: [1] }, page);
      }
    }
  }
  await readRunLogs(store);
  const [first, second] = dead.map(({ dlqId }) => dlqId);
  await store.findDead(PROJECT, first ?? '');
  await store.reviveDead(PROJECT, [{ dlqId: first ?? '', successor: world.message() }], T0);
  await store.deleteDead(PROJECT, [second ?? '']);
  const endpoints = [{ url: 'https://example.com/' }];
  await store.addEndpoints(PROJECT, 'g', endpoints, { groupsMax: 1, endpointsMax: 1 }, T0);
  await store.setGroupHeaders(PROJECT, 'g', { 'Upstash-Retries': ['1'] }, T0);
  await store.findUrlGroup(PROJECT, 'g');
  await store.listUrlGroups(PROJECT);
  await store.removeEndpoints(PROJECT, 'g', endpoints, T0);
  await store.deleteUrlGroup(PROJECT, 'g');
  const schedule: Schedule = {
    key: world.number(),
    projectId: PROJECT,
    id: 's',
    createdAtMs: T0,
    plan: {
      cron: '* * * * *',
      destination: { kind: 'url', url: 'https://example.com/' },
      method: 'POST',
      header: {},
      body: new Uint8Array(),
      settings: waiting.settings,
    },
    standing: { version: 1, isPaused: false, nextAtMs: T0 },
  };
  await store.saveSchedule(schedule, undefined, 1);
  await store.dueSchedules({ nowMs: T0 - 1, limit: 1, bytesMax: 1 });
  await store.dueSchedules({ nowMs: T0, limit: 1, bytesMax: 1 });
  const messages = [world.message({ notBeforeMs: T0 + 60_000 })];
  await store.changeSchedules([{ key: schedule.key, fromVersion: 1, standing: schedule.standing, messages }], T0);
  await store.findSchedule(PROJECT, 's');
  await store.listSchedules(PROJECT);
  await store.deleteSchedule(PROJECT, 's');
  await useLanes(world);
  await useRuns(world);
  await useDeadRuns(world);
  await world.bury(T0);
  await store.dropExpired({
    logsBeforeMs: T0 + 1,
    deadBeforeMs: T0 + 1,
    keysUsedBeforeMs: T0 + 1,
    nowMs: T0 + 1,
    rowsMax: 1_000,
  });
}

export async function useRuns(world: World): Promise<void> {
  const { store } = world;
  const claimToken = world.number();
  const first = await begin(world, { id: 'failing', standing: { kind: 'claimed', claimToken, worker: 'w1' } });
  const others = [await begin(world, { id: 'a' }), await begin(world, { id: 'b' })];
  const body = bytes('{"stepId":1,"stepType":"Wait"}');
  const steps = [first, ...others].flatMap((run) =>
    ['s1', 's2'].map((slot) => appended(world, run, { body, entry: { slot } })),
  );
  await store.accept(steps, T0);
  await store.accept([invoked(world, first, { id: 'child' })], T0);
  await store.accept([invoked(world, first, { id: 'child' })], T0);
  const adopting = beginning(world, { id: 'a' });
  if (adopting.run && adopting.entry) {
    adopting.run.isBySdk = true;
    adopting.entry.runKey = others[0]?.key ?? 0;
  }
  await store.accept([adopting], T0);
  await store.addWaiter(waiter(world, first), undefined, T0);
  for (const order of ['latestFirst', 'earliestFirst'] as const) {
    await store.listRunEvents(PROJECT, {}, { count: 10, order });
    await store.listRunHistories(PROJECT, {}, { count: 10, order });
  }
  const run = await store.findActiveRun(PROJECT, 'child');
  await store.findRun(PROJECT, first.key);
  await store.readJournal(first.key);
  await store.findRecords(PROJECT, run?.invokers ?? []);
  const change = { ...buried(T0), ending: ending(first, { state: 'RUN_FAILED' }), failureCallback: 'none' as const };
  await store.settle(settlement(first, claimToken, change), T0);
  const late = appended(world, first, { entry: { slot: 's7' } });
  await store.endRuns([{ ending: ending(others[0] ?? first), follows: [late] }], T0);
  await store.endRuns([{ ending: ending(others[1] ?? first, { state: 'RUN_CANCELED' }), follows: [] }], T0);
}

async function readRunLogs(store: Store): Promise<void> {
  const page = { count: 5, order: 'latestFirst', cursor: `${T0}-5` } as const;
  const filters: RunFilter[] = [
    ...[{}, { runId: ['a'] }, { runCreatedAtMs: T0 }, { label: ['x'], state: ['RUN_FAILED'] } satisfies RunFilter],
    ...[{ runs: [{ id: 'a', createdAtMs: T0 }] }, { fromMs: T0, toMs: T0 }],
    { messageId: [mintMessageId(1, (count) => new Uint8Array(count))], runUrl: ['u'] },
  ];
  for (const { runs, state, ...filter } of filters) {
    await store.listRunHistories(PROJECT, { ...filter, ...(runs && { runs }), ...(state && { state }) }, page);
    await store.listRunHistories(PROJECT, filter, page, 10);
    await store.listRunEvents(PROJECT, filter, page);
    await store.listRunEvents(PROJECT, { ...filter, state: ['RUN_FAILED'] }, page);
  }
}

async function useDeadRuns(world: World): Promise<void> {
  const { store } = world;
  const dlqId = `${T0}-1`;
  const filters = [{}, { label: ['x'], failureCallback: ['fail' as const] }, { runId: 'r', fromMs: T0, toMs: T0 }];
  for (const order of ['latestFirst', 'earliestFirst'] as const) {
    for (const filter of filters) {
      for (const cursor of [undefined, `${T0}-5`]) {
        const page = cursor === undefined ? { count: 5, order } : { count: 5, order, cursor };
        await store.listDeadRuns(PROJECT, filter, page);
      }
    }
  }
  await store.findDeadRuns(PROJECT, [dlqId]);
  await store.deleteDeadRuns(PROJECT, [dlqId]);
  await store.outlineJournal(1);
  await store.activeRunKeys(PROJECT, { urlPrefix: ['https://a'], fromMs: T0, toMs: T0 }, { afterKey: -1, limit: 5 });
  await store.findFailureCallback(PROJECT, dlqId);
  await store.repeatFailureCallback(PROJECT, dlqId, world.message(), T0);
  await store.cancelFailureCallback(PROJECT, dlqId, T0);
}

export async function useLanes(world: World): Promise<void> {
  const { store } = world;
  await store.saveQueue(PROJECT, { name: 'q', parallelism: 1, isPaused: false }, T0);
  await store.saveQueue(PROJECT, { name: 'q', parallelism: 2, isPaused: false }, T0);
  const limited = { queueName: 'q', flowControl: { key: 'k', parallelism: 1, rate: 10, periodS: 1 } };
  const running = await world.acceptClaimed({ settings: limited });
  const waiting = await world.accept({ settings: limited });
  await world.accept({ settings: { flowControl: limited.flowControl } });
  const queued = await world.accept({ settings: { queueName: 'q' } });
  for (const { id } of [waiting, queued]) await store.standingOf(PROJECT, id, T0);
  await store.setQueuePaused(PROJECT, 'q', true, T0);
  await store.setQueuePaused(PROJECT, 'q', false, T0);
  await store.findQueue(PROJECT, 'q');
  await store.listQueues(PROJECT);
  const succession = { worker: 'w1', claimToken: world.number(), bytesMax: 1_000 };
  await store.settle(settlement(running.message, running.claimToken, delivered()), T0, succession);
  await world.claim({ limit: 10 });
  const queue = await store.deleteQueue(PROJECT, 'q', T0);
  if (queue) await store.emptyQueue(queue, 10, T0);
  await store.setKeyPaused(PROJECT, 'k', true, T0);
  await store.setKeyPaused(PROJECT, 'k', false, T0);
  await store.pinKey(PROJECT, 'k', { parallelism: 1 }, T0);
  await store.unpinKey(PROJECT, 'k', { parallelism: true, rate: true }, T0);
  await store.resetKeyRate(PROJECT, 'k', T0);
  await store.findKey(PROJECT, 'k', T0);
  await store.listKeys(PROJECT, { search: 'k', after: '', count: 10 }, T0);
  await store.countInFlight(PROJECT);
}
