/** Creates the engine: recovers the claims of earlier workers, starts the loops and binds the commands. */
import { COMMANDS, type Engine } from './commands.ts';
import { bindContext, type EngineContext } from './context.ts';
import type { EngineDeps } from './deps.ts';
import { Dispatcher } from './dispatch/dispatcher.ts';
import { BACKLOGS_READ, readBacklogs } from './lanes/backlogs.ts';
import { DueLoop } from './loops/due-loop.ts';
import { MinuteCounter } from './minutes/counter.ts';
import type { ClaimToken } from './model.ts';
import { OperatorEvents } from './operator-events/events.ts';
import { NO_PROJECT } from './operator-events/model.ts';
import { Reports } from './reports.ts';
import { type RecoveryLoops, RunningEngine } from './running-engine.ts';
import { ActiveRuns } from './runs/active-runs.ts';
import { cancelLoop } from './runs/endings/endings.ts';
import { JournalBodies } from './runs/journal-bodies.ts';
import { waiterLoop } from './runs/waits/wakes.ts';
import { scheduleLoop } from './schedules/loop.ts';
import { StoreFull } from './store-errors.ts';
import { ALWAYS_OPEN } from './workers/fence.ts';
import { Heartbeat } from './workers/heartbeat.ts';
import { Numbers } from './workers/numbers.ts';

/** Releases the claims of dead workers (P7) and starts delivering. Throws `StoreUnavailable`. */
export async function createEngine(deps: EngineDeps): Promise<Engine> {
  const { store, recovery = { kind: 'releaseAll' } } = deps;
  const recovered = await recover(deps);
  const { heartbeat } = recovered;
  const numbers = new Numbers(store, { isShared: recovery.kind !== 'releaseAll' });
  const bodies = new JournalBodies(store);
  const minutes = new MinuteCounter(store.minutes, deps.clock, deps.log);
  const operatorEvents = deps.operatorEvents && new OperatorEvents(deps, numbers, deps.operatorEvents);
  const reports = new Reports(deps, minutes, operatorEvents);
  const cancellations = cancelLoop(deps);
  const fence = heartbeat?.fence ?? ALWAYS_OPEN;
  const areClaimsSeparate = recovery.kind === 'heartbeat';
  const deliveryContext = {
    ...deps,
    numbers,
    bodies,
    minutes,
    reports,
    operatorEvents,
    cancellations,
    fence,
    areClaimsSeparate,
  };
  const dispatcher = new Dispatcher(deliveryContext);
  const context = contextOf({ ...deliveryContext, dispatcher, active: new ActiveRuns(store) });
  await addBacklogs(dispatcher, deps, heartbeat);
  const { events } = store;
  events.onDue = (dueAtMs) => dispatcher.noteDue(dueAtMs);
  events.onCancelled = (claimTokens) => dispatcher.interruptCancelled(claimTokens);
  events.onWaitingBacklog = (backlog) => dispatcher.noteWaitingBacklog(backlog);
  dispatcher.wake();
  const engine = new RunningEngine(context, recovered);
  engine.startLoops();
  return Object.assign(engine, bindContext(COMMANDS, context));
}

/** Adds to the context the loops that need the context themselves. */
function contextOf(shared: Omit<EngineContext, 'waiters' | 'schedules'>): EngineContext {
  const context = shared as EngineContext;
  context.waiters = waiterLoop(context);
  context.schedules = scheduleLoop(context);
  return context;
}

/**
 * Adds all backlogs. With heartbeats, adds only the first batch, and the rest is read after the next heartbeat: to read a
 * million backlogs now would delay the first heartbeat.
 */
async function addBacklogs(
  dispatcher: Dispatcher,
  { store }: EngineDeps,
  heartbeat: Heartbeat | undefined,
): Promise<void> {
  for await (const backlogs of readBacklogs(store.messages)) {
    dispatcher.addBacklogs(backlogs);
    if (heartbeat && backlogs.length === BACKLOGS_READ) return heartbeat.noteUnreadBacklogs();
  }
}

async function recover(deps: EngineDeps): Promise<RecoveryLoops> {
  const { store, recovery = { kind: 'releaseAll' } } = deps;
  switch (recovery.kind) {
    case 'releaseAll':
      return { release: await releaseAll(deps, deps.operatorEvents?.thresholds.worker_lost !== undefined) };
    case 'none':
      return {};
    case 'heartbeat': {
      const heartbeat = new Heartbeat(deps, recovery);
      store.events.onCommitUnknown = () => heartbeat.noteCommitUnknown();
      store.events.onAccountsChanged = () => heartbeat.noteAccounts();
      await heartbeat.initialize();
      return { heartbeat };
    }
  }
}

type RecoveryContext = Pick<EngineDeps, 'store' | 'clock' | 'log'>;

/**
 * Releases all claims in a store that no other worker uses (P7). If the disk is full, returns a loop that releases the
 * claims once there is space; the caller stops that loop when the engine ends. `isLossReported`: whether the operator is
 * notified of a lost worker. Throws `StoreUnavailable`.
 */
export async function releaseAll(context: RecoveryContext, isLossReported: boolean): Promise<DueLoop | undefined> {
  try {
    await releaseUpTo(context, isLossReported);
    return undefined;
  } catch (error) {
    if (!(error instanceof StoreFull)) throw error;
  }
  // Claims with later tokens belong to this process and are not released.
  const upToToken = await context.store.messages.lastClaim();
  const loop = new DueLoop(context, 'recovery_failed', async () => {
    await releaseUpTo(context, isLossReported, upToToken);
    return Infinity;
  });
  loop.wake();
  return loop;
}

async function releaseUpTo(context: RecoveryContext, isLossReported: boolean, upToToken?: ClaimToken): Promise<void> {
  const { store, clock, log } = context;
  const nowMs = clock.nowMs();
  const released = await store.messages.releaseAll({ nowMs, upToToken });
  if (released === 0) return;
  log.info('recovered', { count: released });
  if (!isLossReported) return;
  // A worker releases its claims when it shuts down, so these claims belong to a worker that was lost.
  const example = `the process before, with ${released} attempts under way`;
  const key = await store.messages.reserveNumbers({ count: 1 });
  const fact = { key, kind: 'worker_lost', projectId: NO_PROJECT, atMs: nowMs, example } as const;
  await store.operatorEvents.noteFacts({ facts: [fact] });
}
