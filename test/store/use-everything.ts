/**
 * Calls every operation on messages and runs at least once, so that the statements sent to the database can be
 * examined.
 */

import { backlogKey } from '../../src/engine/lanes/backlog-key.ts';
import type { UnfinishedFilter, UnfinishedState } from '../../src/engine/lists/unfinished.ts';
import { emptyMinute } from '../../src/engine/minutes/counts.ts';
import type { MessageId } from '../../src/engine/model.ts';
import type { RunFilter } from '../../src/engine/runs/logs/log-store.ts';
import type { Schedule } from '../../src/engine/schedules/schedules.ts';
import { mintMessageId } from '../../src/protocol/ids.ts';
import type { Store } from '../../src/store/store.ts';
import { cancelMatching } from './cancel-matching.ts';
import { appended, ending, invoked, newRunMessage, startRun, waiter } from './conformance/run-world.ts';
import { bytes, delivered, lastFailure, PROJECT, settlement, T0, type World } from './conformance/world.ts';

export async function useEverything(world: World): Promise<void> {
  const { store } = world;
  const { message, claimToken } = await world.acceptClaimed({ deduplication: { hash: 'h', expiresAtMs: T0 } });
  await store.messages.settle({ settlement: settlement(message, claimToken, delivered()), nowMs: T0 });
  const waiting = await world.accept();
  await world.claim({ backlogsToServe: [backlogKey(PROJECT, waiting.origin)] });
  await world.accept();
  await world.claim({ rotation: { after: PROJECT }, hasBacklogs: true });
  await world.claim({ capacityByOrigin: {}, defaultCapacity: 0 });
  await store.messages.releaseAll({ nowMs: T0 });
  await store.messages.releaseUnlimited({ nowMs: T0 });
  await store.messages.lastClaim();
  await store.messages.release({ claims: [{ key: waiting.key, projectId: PROJECT, claimToken: 1 }], nowMs: T0 });
  await world.waitingBacklogs();
  await store.messages.find({ projectId: PROJECT, id: waiting.id, deliveredSinceMs: T0 });
  await store.messages.findLive({ projectId: PROJECT, id: waiting.id, nowMs: T0 });
  await readUnfinished(store, waiting.id);
  await store.messages.makeDue({ projectId: PROJECT, id: (await world.accept({ notBeforeMs: T0 + 1 })).id, nowMs: T0 });
  await store.messages.cancelById({ projectId: PROJECT, ids: [waiting.id], nowMs: T0 });
  await world.acceptClaimed();
  await cancelMatching(store, PROJECT, { label: ['x'], fromMs: T0, toMs: T0 }, -1, T0);
  await cancelMatching(store, PROJECT, {}, -1, T0);
  const dead = [await world.acceptDead(T0), await world.acceptDead(T0)];
  const orders = ['latestFirst', 'earliestFirst'] as const;
  const filters = [{}, { label: ['x'] }, { messageId: [message.id] }, { fromMs: T0, toMs: T0, url: ['u'] }];
  for (const order of orders) {
    for (const filter of filters) {
      for (const cursor of [undefined, `${T0}-5`]) {
        const page = cursor === undefined ? { count: 5, order } : { count: 5, order, cursor };
        await store.logs.listLogs({ projectId: PROJECT, filter, page });
        await store.logs.listLogs({ projectId: PROJECT, filter: { ...filter, state: ['FAILED'] }, page });
        await store.dead.listDead({ projectId: PROJECT, filter, page });
        await store.dead.listDead({ projectId: PROJECT, filter: { ...filter, responseStatus: [1] }, page });
      }
    }
  }
  const place = { timeMs: T0, n: 5 };
  await store.logs.listLogsAfter({ projectId: PROJECT, after: place, toMs: T0, except: [1], count: 5 });
  await store.logs.newestLogs({ projectId: PROJECT, toMs: T0, count: 5, after: place });
  await readRunLogs(store);
  const dlqIds = dead.map(({ dlqId }) => dlqId);
  await store.dead.countDead({ projectId: PROJECT, dlqIds });
  await store.dead.findDeadMany({ projectId: PROJECT, dlqIds });
  const [first, second] = dlqIds;
  await store.dead.findDead({ projectId: PROJECT, dlqId: first ?? '' });
  await store.dead.retryDead({
    projectId: PROJECT,
    retries: [{ dlqId: first ?? '', successor: world.message() }],
    nowMs: T0,
  });
  await store.dead.deleteDead({ projectId: PROJECT, dlqIds: [second ?? ''] });
  const endpoints = [{ url: 'https://example.com/' }];
  await store.urlGroups.addEndpoints({
    projectId: PROJECT,
    name: 'g',
    endpoints,
    limits: { groupsMax: 1, endpointsMax: 1 },
    nowMs: T0,
  });
  await store.urlGroups.setGroupHeaders({
    projectId: PROJECT,
    name: 'g',
    headers: { 'Upstash-Retries': ['1'] },
    nowMs: T0,
  });
  await store.urlGroups.findUrlGroup({ projectId: PROJECT, name: 'g' });
  await store.urlGroups.listUrlGroups({ projectId: PROJECT });
  await store.urlGroups.removeEndpoints({ projectId: PROJECT, name: 'g', selectors: endpoints, nowMs: T0 });
  await store.urlGroups.deleteUrlGroup({ projectId: PROJECT, name: 'g' });
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
    state: { version: 1, isPaused: false, nextAtMs: T0 },
  };
  await store.schedules.saveSchedule({ schedule, fromVersion: undefined, schedulesMax: 1 });
  await store.schedules.dueSchedules({ nowMs: T0 - 1, limit: 1, bytesMax: 1 });
  await store.schedules.dueSchedules({ nowMs: T0, limit: 1, bytesMax: 1 });
  const messages = [world.message({ notBeforeMs: T0 + 60_000 })];
  await store.schedules.changeSchedules({
    changes: [{ key: schedule.key, fromVersion: 1, state: schedule.state, messages }],
    nowMs: T0,
  });
  await store.schedules.strandedSchedules({ passedAfterMs: T0, limit: 10, bytesMax: 1 });
  await store.schedules.findSchedule({ projectId: PROJECT, id: 's' });
  await store.schedules.listSchedules({ projectId: PROJECT });
  await store.schedules.deleteSchedule({ projectId: PROJECT, id: 's' });
  await useLanes(world);
  await useRuns(world);
  await useDeadRuns(world);
  await useWaiters(world);
  await store.minutes.addMinutes({ projectId: PROJECT, minutes: [emptyMinute(T0)] });
  await store.minutes.listMinutes({ projectId: PROJECT, fromMs: T0, toMs: T0, count: 1 });
  await useOperatorEvents(world);
  await world.acceptDead(T0);
  await store.retention.dropExpired({
    logsBeforeMs: T0 + 1,
    deadBeforeMs: T0 + 1,
    minutesBeforeMs: T0 + 1,
    keysUsedBeforeMs: T0 + 1,
    nowMs: T0 + 1,
    rowsMax: 1_000,
  });
}

async function useOperatorEvents(world: World): Promise<void> {
  const { operatorEvents, workers } = world.store;
  const rules = { thresholds: { worker_lost: 1 }, quietMs: 1_000, factsMax: 10 };
  await workers.expireWorkers({ nowMs: T0 * 2, isReported: true });
  const facts = [{ key: world.number(), kind: 'worker_lost', projectId: 0, atMs: T0, example: 'w' } as const];
  await operatorEvents.noteFacts({ facts });
  const { due } = await operatorEvents.gatherFacts({ nowMs: T0, ...rules });
  for (const tally of due) {
    await operatorEvents.noteReported({ tally: { ...tally, count: 0 }, quietUntilMs: T0 });
    await operatorEvents.reportTally({
      projectId: PROJECT,
      tally,
      message: world.message(),
      quietUntilMs: T0,
      nowMs: T0,
    });
  }
}

export async function useRuns(world: World): Promise<void> {
  const { store } = world;
  const claimToken = world.number();
  const first = await startRun(world, { id: 'failing', state: { kind: 'claimed', claimToken, worker: 'w1' } });
  const others = [await startRun(world, { id: 'a' }), await startRun(world, { id: 'b' })];
  const body = bytes('{"stepId":1,"stepType":"Wait"}');
  const steps = [first, ...others].flatMap((run) =>
    ['s1', 's2'].map((entryKey) => appended(world, run, { body, entry: { entryKey } })),
  );
  await store.messages.accept({ messages: steps, nowMs: T0 });
  await store.messages.accept({
    messages: [appended(world, first, { entry: { kind: 'stepConfig', entryKey: 'h1' } })],
    nowMs: T0,
  });
  await store.messages.accept({ messages: [invoked(world, first, { id: 'child' })], nowMs: T0 });
  await store.messages.accept({ messages: [invoked(world, first, { id: 'child' })], nowMs: T0 });
  const adopting = newRunMessage(world, { id: 'a' });
  if (adopting.run && adopting.entry) {
    adopting.run.isBySdk = true;
    adopting.entry.runKey = others[0]?.key ?? 0;
  }
  await store.messages.accept({ messages: [adopting], nowMs: T0 });
  await store.waiters.addWaiter({ waiter: waiter(world, first), taken: undefined, nowMs: T0 });
  await store.waiters.listAllWaiters({ projectId: PROJECT, prefix: 'e', after: { eventId: 'e', key: 0 }, count: 10 });
  for (const order of ['latestFirst', 'earliestFirst'] as const) {
    await store.runLogs.listRunEvents({ projectId: PROJECT, filter: {}, page: { count: 10, order } });
    await store.runLogs.listRunHistories({ projectId: PROJECT, filter: {}, page: { count: 10, order } });
  }
  const run = await store.runs.findActiveRun({ projectId: PROJECT, id: 'child' });
  await store.runs.findRun({ projectId: PROJECT, key: first.key });
  await store.runs.readJournal({ projectId: first.projectId, runKey: first.key });
  await store.runs.findRecords({ projectId: PROJECT, keys: run?.invokers ?? [] });
  const after = { runKey: -1, key: -1 };
  await store.runs.findParked({ projectId: PROJECT, after, limit: 10 });
  await store.runs.findParked({ projectId: PROJECT, runKey: first.key, after, limit: 10 });
  const change = {
    ...lastFailure(T0),
    ending: ending(first, { state: 'RUN_FAILED' }),
    failureCallback: 'none' as const,
  };
  await store.messages.settle({ settlement: settlement(first, claimToken, change), nowMs: T0 });
  const late = appended(world, first, { entry: { entryKey: 's7' } });
  await store.runs.endRuns({ endings: [{ ending: ending(others[0] ?? first), follows: [late] }], nowMs: T0 });
  await store.runs.endRuns({
    endings: [{ ending: ending(others[1] ?? first, { state: 'RUN_CANCELED' }), follows: [] }],
    nowMs: T0,
  });
}

async function useWaiters(world: World): Promise<void> {
  const { messages, runs, waiters } = world.store;
  const claimToken = world.number();
  const run = await startRun(world, { id: 'waiting', state: { kind: 'claimed', claimToken, worker: 'w1' } });
  const made = waiter(world, run);
  await waiters.addWaiter({ waiter: made, taken: undefined, nowMs: T0 });
  await waiters.listWaiters({ projectId: PROJECT, eventId: 'e', count: 10 });
  await waiters.dueWaiters({ nowMs: made.deadlineMs, limit: 10 });
  const result = appended(world, run, { entry: { entryKey: 'w' } });
  await waiters.resolveWaiters({ resolutions: [{ waiterKey: made.record.message.key, result }], nowMs: T0 });
  const pendingEvent = { key: world.number(), body: bytes('{}') };
  await waiters.savePendingEvent({
    projectId: PROJECT,
    runKey: run.key,
    eventId: 'e',
    ...pendingEvent,
    limits: { events: 1, bytes: 100 },
  });
  await waiters.nextPendingEvent({ runKey: run.key, eventId: 'e' });
  await runs.journalBytes({ projectId: PROJECT, id: 'waiting' });
  const follows = [appended(world, run, { entry: { entryKey: 's1' } })];
  await messages.checkpoint({ done: [settlement(run, claimToken, delivered())], follows, nowMs: T0 });
  const { state: _, ...failed } = ending(run);
  await runs.endRuns({ endings: [{ ending: { ...failed, state: 'RUN_FAILED' }, follows: [] }], nowMs: T0 });
  await runs.cancelRemaining({ nowMs: T0 });
  const again = newRunMessage(world, { id: 'again' });
  if (!again.run || !again.entry) throw new Error('a first message begins a run');
  const isWhole = { isFirst: true, isLast: true, waiters: [], invocations: [], children: [] };
  const journal = [{ kind: 'record' as const, record: { message: again.message, entry: again.entry } }];
  const revival = { projectId: PROJECT, dlqId: `${T0}-${run.key}`, run: again.run, runKey: again.message.key };
  await world.store.deadRuns.retryRun({ ...revival, ...isWhole, journal, nowMs: T0 });
}

async function readUnfinished(store: Store, id: MessageId): Promise<void> {
  const filters: UnfinishedFilter[] = [{}, { label: ['x'], fromMs: T0, toMs: T0 }, { messageId: [id] }];
  for (const filter of filters) {
    for (const unfinishedState of [['active'], ['held', 'waiting']] satisfies UnfinishedState[][]) {
      for (const page of [{ count: 5 }, { count: 5, cursor: '0-5' }]) {
        await store.messages.listUnfinished({ projectId: PROJECT, filter, page, nowMs: T0 });
        await store.messages.listUnfinished({
          projectId: PROJECT,
          filter: { ...filter, unfinishedState },
          page,
          nowMs: T0,
        });
      }
    }
  }
  await store.backlog.readBacklog({ projectId: PROJECT, nowMs: T0 });
  await store.backlog.readStorage({ projectId: PROJECT });
  await store.backlog.readFailures({ projectId: PROJECT });
  await store.backlog.readTotals({ nowMs: T0 });
}

async function readRunLogs(store: Store): Promise<void> {
  const page = { count: 5, order: 'latestFirst', cursor: `${T0}-5` } as const;
  const filters: RunFilter[] = [
    ...[{}, { runId: ['a'] }, { runCreatedAtMs: T0 }, { label: ['x'], state: ['RUN_FAILED'] } satisfies RunFilter],
    ...[{ runs: [{ id: 'a', createdAtMs: T0 }] }, { fromMs: T0, toMs: T0 }],
    { messageId: [mintMessageId(1, (count) => new Uint8Array(count))], runUrl: ['u'] },
  ];
  for (const { runs, state, ...filter } of filters) {
    await store.runLogs.listRunHistories({
      projectId: PROJECT,
      filter: { ...filter, ...(runs && { runs }), ...(state && { state }) },
      page,
    });
    await store.runLogs.listRunHistories({ projectId: PROJECT, filter, page, bodyBytesMax: 10 });
    await store.runLogs.listRunEvents({ projectId: PROJECT, filter, page });
    await store.runLogs.listRunEvents({ projectId: PROJECT, filter: { ...filter, state: ['RUN_FAILED'] }, page });
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
        await store.deadRuns.listDeadRuns({ projectId: PROJECT, filter, page });
      }
    }
  }
  await store.deadRuns.findDeadRuns({ projectId: PROJECT, dlqIds: [dlqId] });
  await store.deadRuns.deleteDeadRuns({ projectId: PROJECT, dlqIds: [dlqId] });
  await store.deadRuns.outlineJournal({ projectId: 1, runKey: 1 });
  await store.deadRuns.activeRunKeys({
    projectId: PROJECT,
    filter: { urlPrefix: ['https://a'], fromMs: T0, toMs: T0 },
    afterKey: -1,
    limit: 5,
  });
  await store.deadRuns.findFailureCallback({ projectId: PROJECT, dlqId });
  await store.deadRuns.repeatFailureCallback({ projectId: PROJECT, dlqId, message: world.message(), nowMs: T0 });
  await store.deadRuns.cancelFailureCallback({ projectId: PROJECT, dlqId, nowMs: T0 });
}

export async function useLanes(world: World): Promise<void> {
  const { store } = world;
  await store.queues.saveQueue({ projectId: PROJECT, name: 'q', parallelism: 1, isPaused: false, nowMs: T0 });
  await store.queues.saveQueue({ projectId: PROJECT, name: 'q', parallelism: 2, isPaused: false, nowMs: T0 });
  const limited = { queueName: 'q', flowControl: { key: 'k', parallelism: 1, rate: 10, periodS: 1 } };
  const running = await world.acceptClaimed({ settings: limited });
  const waiting = await world.accept({ settings: limited });
  await world.accept({ settings: { flowControl: limited.flowControl } });
  const queued = await world.accept({ settings: { queueName: 'q' } });
  for (const { id } of [waiting, queued]) {
    await store.messages.findLive({ projectId: PROJECT, id, nowMs: T0 });
    await store.messages.findStored({ projectId: PROJECT, id });
    await store.messages.listReplays({ projectId: PROJECT, id });
  }
  await store.queues.setQueuePaused({ projectId: PROJECT, name: 'q', isPaused: true, nowMs: T0 });
  await store.queues.setQueuePaused({ projectId: PROJECT, name: 'q', isPaused: false, nowMs: T0 });
  await store.queues.findQueue({ projectId: PROJECT, name: 'q', nowMs: T0 });
  await store.queues.listQueues({ projectId: PROJECT, nowMs: T0 });
  const handoff = { worker: 'w1', claimToken: world.number(), bytesMax: 1_000 };
  await store.messages.settle({
    settlement: settlement(running.message, running.claimToken, delivered()),
    nowMs: T0,
    handoff,
  });
  await world.claim({ limit: 10 });
  const queue = await store.queues.deleteQueue({ projectId: PROJECT, name: 'q', nowMs: T0 });
  if (queue) await store.queues.emptyQueue({ ...queue, count: 10, nowMs: T0 });
  await store.keys.setKeyPaused({ projectId: PROJECT, key: 'k', isPaused: true, nowMs: T0 });
  await store.keys.setKeyPaused({ projectId: PROJECT, key: 'k', isPaused: false, nowMs: T0 });
  await store.keys.pinKey({ projectId: PROJECT, key: 'k', pin: { parallelism: 1 }, nowMs: T0 });
  await store.keys.unpinKey({ projectId: PROJECT, key: 'k', parallelism: true, rate: true, nowMs: T0 });
  await store.keys.resetKeyRate({ projectId: PROJECT, key: 'k', nowMs: T0 });
  await store.keys.findKey({ projectId: PROJECT, key: 'k', nowMs: T0 });
  await store.keys.listKeys({ projectId: PROJECT, search: 'k', after: '', count: 10, nowMs: T0 });
  await store.keys.countInFlight({ projectId: PROJECT });
}
