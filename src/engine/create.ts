/** Puts the engine together: recovery first, then its loops, then it takes commands. */
import { COMMANDS, type Engine } from './commands.ts';
import { bound, type EngineContext } from './context.ts';
import type { EngineDeps } from './deps.ts';
import { Dispatcher } from './dispatch/dispatcher.ts';
import { LINES_READ, readLines } from './lanes/backlogged-lines.ts';
import { DueLoop } from './loops/due-loop.ts';
import { RetentionLoop } from './loops/retention.ts';
import { MinuteCounter } from './minutes/counter.ts';
import type { ClaimToken } from './model.ts';
import { OperatorEvents } from './operator-events/events.ts';
import { NO_PROJECT, type OperatorEventsOptions } from './operator-events/model.ts';
import { StoreWatch } from './operator-events/store-watch.ts';
import { Reports } from './reports.ts';
import { RunningEngine } from './running-engine.ts';
import { ActiveRuns } from './runs/active-runs.ts';
import { leftLoop } from './runs/endings/endings.ts';
import { JournalBodies } from './runs/journal-bodies.ts';
import { waiterLoop } from './runs/waits/wakes.ts';
import { scheduleLoop } from './schedules/loop.ts';
import { StoreFull } from './store-errors.ts';
import { ALWAYS_OPEN } from './workers/fence.ts';
import { Heartbeat } from './workers/heartbeat.ts';
import { Numbers } from './workers/numbers.ts';

/** Releases what dead workers had in flight (P7) and starts delivering. Throws `StoreUnavailable`. */
export async function createEngine(deps: EngineDeps): Promise<Engine> {
  const { store, recovery = { kind: 'releaseAll' }, dropsExpired = true } = deps;
  const { heartbeat, release } = await recover(deps);
  const numbers = new Numbers(store, { isShared: recovery.kind !== 'releaseAll' });
  const bodies = new JournalBodies(store);
  const minutes = new MinuteCounter(store.minutes, deps.clock, deps.log);
  const operatorEvents = deps.operatorEvents && new OperatorEvents(deps, numbers, deps.operatorEvents);
  const reports = new Reports({ ...deps, minutes, operatorEvents, tellsAll: deps.tellsAll ?? false });
  const left = leftLoop(deps);
  const shared = { ...deps, numbers, bodies, reports, operatorEvents, left };
  const fence = heartbeat?.fence ?? ALWAYS_OPEN;
  const dispatcher = new Dispatcher({ ...shared, fence, areClaimsApart: recovery.kind === 'heartbeat' });
  const context = contextOf({ ...shared, dispatcher, active: new ActiveRuns(store) });
  await addLines(dispatcher, deps, heartbeat);
  const { events } = store;
  events.onDue = (dueAtMs) => dispatcher.noteDue(dueAtMs);
  events.onCancelled = (claimTokens) => dispatcher.endCancelled(claimTokens);
  events.onWaitingLine = (line) => dispatcher.noteWaitingLine(line);
  const retention = new RetentionLoop(deps);
  dispatcher.wake();
  if (dropsExpired) retention.start();
  const isWatchTurn = () => dropsExpired && (heartbeat?.isFirst ?? true);
  const watch = operatorEvents && new StoreWatch(deps, operatorEvents, isWatchTurn);
  const engine = new RunningEngine(context, { retention, minutes, heartbeat, watch, release });
  engine.startLoops();
  return Object.assign(engine, bound(COMMANDS, context));
}

/** Adds the loops that take the context themselves. */
function contextOf(shared: Omit<EngineContext, 'waiters' | 'schedules'>): EngineContext {
  const context = shared as EngineContext;
  context.waiters = waiterLoop(context);
  context.schedules = scheduleLoop(context);
  return context;
}

/** Adds all lines, or the first of them if heartbeats bring the others: the next heartbeat must not wait for a million. */
async function addLines(
  dispatcher: Dispatcher,
  { store }: EngineDeps,
  heartbeat: Heartbeat | undefined,
): Promise<void> {
  for await (const lines of readLines(store.messages)) {
    dispatcher.addLines(lines);
    if (heartbeat && lines.length === LINES_READ) return heartbeat.noteLinesLeft();
  }
}

/** Answers the heartbeats, or a release that waits for space on the disk. */
async function recover(deps: EngineDeps): Promise<{ heartbeat?: Heartbeat; release?: DueLoop | undefined }> {
  const { store, recovery = { kind: 'releaseAll' } } = deps;
  switch (recovery.kind) {
    case 'releaseAll':
      return { release: await releaseAll(deps) };
    case 'none':
      return {};
    case 'heartbeat': {
      const { kind: _, ...own } = recovery;
      const tellsLost = deps.operatorEvents?.thresholds.worker_lost !== undefined;
      const heartbeat = new Heartbeat({ ...deps, ...own, tellsLost });
      store.events.onCommitUnknown = () => heartbeat.noteCommitUnknown();
      store.events.onAccountsChanged = () => heartbeat.noteAccounts();
      await heartbeat.begin();
      return { heartbeat };
    }
  }
}

type ReleaseNeeds = Pick<EngineDeps, 'store' | 'clock' | 'log'> & {
  operatorEvents?: Pick<OperatorEventsOptions, 'thresholds'> | undefined;
};

/**
 * Releases all that is in flight in a store that no other worker uses (P7). On a full disk that has to wait: then the answer
 * is the loop that does it once there is space, which the caller stops at the end. Throws `StoreUnavailable`.
 */
export async function releaseAll(needs: ReleaseNeeds): Promise<DueLoop | undefined> {
  const { store, clock, log } = needs;
  try {
    await releaseUpTo(needs);
    return undefined;
  } catch (error) {
    if (!(error instanceof StoreFull)) throw error;
  }
  // What is claimed from now on is this process's.
  const upToToken = await store.messages.lastClaim();
  const doPiece = async () => {
    await releaseUpTo(needs, upToToken);
    return Infinity;
  };
  const loop = new DueLoop({ clock, log, failure: 'recovery_failed', doPiece });
  loop.wake();
  return loop;
}

async function releaseUpTo({ store, clock, log, operatorEvents }: ReleaseNeeds, upToToken?: ClaimToken): Promise<void> {
  const nowMs = clock.nowMs();
  const released = await store.messages.releaseAll({ nowMs, upToToken });
  if (released === 0) return;
  log.info('recovered', { count: released });
  if (operatorEvents?.thresholds.worker_lost === undefined) return;
  // A worker that is stopped gives back what it has.
  const example = `the process before, with ${released} attempts under way`;
  const key = await store.messages.reserveNumbers({ count: 1 });
  const fact = { key, kind: 'worker_lost', projectId: NO_PROJECT, atMs: nowMs, example } as const;
  await store.operatorEvents.noteFacts({ facts: [fact] });
}
