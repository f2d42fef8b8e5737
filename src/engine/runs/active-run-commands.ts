/** Commands of clients on active runs: reads, completes and cancels one or many (contract W 17.2). */
import type { EndState, JournalEntry, Run, RunKey } from '../../workflow/model.ts';
import type { EngineContext } from '../context.ts';
import { STALE, untilCurrent } from '../loops/until-current.ts';
import type { Millis, NewMessage, ProjectId } from '../model.ts';
import { isOf } from './active-runs.ts';
import type { ActiveRunFilter } from './dead/dead-run-store.ts';
import { type Ending, endingOf, type RunEnd } from './endings/endings.ts';
import type { EndedAs } from './stores.ts';

/** Runs that a bulk cancel reads together. */
const READ_TOGETHER = 500;
/** Runs ended in one transaction, which delays publishes by about a millisecond. */
const ENDED_TOGETHER = 20;

/** The end of a run by a command. */
type Ends = Pick<RunEnd, 'response'> & { state: Exclude<EndState, 'RUN_FAILED'> };

/** Selects among runs that had the same id one after the other. Absent: the active one. */
export interface WhichRun {
  createdAtMs?: Millis | undefined;
  runKey?: RunKey | undefined;
}

/** The properties of an active run that the API needs. */
export interface ActiveRun {
  /** Its bodies are redacted. */
  hidesBodies: boolean;
}

/** `undefined` when no such run is active; one that has just ended may still be found. */
export async function findActiveRun(
  { active }: EngineContext,
  projectId: ProjectId,
  runId: string,
): Promise<ActiveRun | undefined> {
  const { run } = await active.find(projectId, runId);
  return run && { hidesBodies: run.config.redact?.body ?? false };
}

/** The whole journal, as in deliveries; `undefined` when no run with this id (and `runKey`, if given) is active. */
export async function readJournal(
  { store, active }: EngineContext,
  projectId: ProjectId,
  runId: string,
  runKey?: RunKey,
): Promise<JournalEntry[] | undefined> {
  const run = await active.read(projectId, runId);
  return run && (runKey ?? run.key) === run.key ? store.runs.readJournal({ projectId, runKey: run.key }) : undefined;
}

/** Completes a run. Has no effect on a run that has ended or has another `createdAtMs`. */
export async function completeRun(
  context: EngineContext,
  projectId: ProjectId,
  runId: string,
  response: Uint8Array,
  createdAtMs?: Millis,
): Promise<void> {
  const ends = { state: 'RUN_SUCCESS', ...(response.length > 0 && { response }) } as const;
  await endOne(context, projectId, runId, { createdAtMs }, ends);
}

/** False when no such run is active. */
export function cancelRun(
  context: EngineContext,
  projectId: ProjectId,
  runId: string,
  which: WhichRun = {},
): Promise<boolean> {
  return endOne(context, projectId, runId, which, { state: 'RUN_CANCELED' });
}

function endOne(
  context: EngineContext,
  projectId: ProjectId,
  runId: string,
  { createdAtMs, runKey }: WhichRun,
  ends: Ends,
): Promise<boolean> {
  const { active } = context;
  return untilCurrent('the workflow run', async () => {
    const { run, isFresh } = await active.find(projectId, runId);
    const isMeant = run && isOf(run, createdAtMs) && (runKey ?? run.key) === run.key;
    const [as = 'over'] = isMeant ? await endAll(context, [run], ends) : [];
    if (as === 'ended') return true;
    active.forget(projectId, runId);
    return as === 'over' && isFresh ? false : STALE;
  });
}

/** Cancels active runs by their ids; returns how many were active. */
export function cancelRuns(context: EngineContext, projectId: ProjectId, runIds: string[]): Promise<number> {
  return cancelAll(context, runIds, (id) => context.store.runs.findActiveRun({ projectId, id }));
}

/** Cancels up to `count` active runs that match (default: all), oldest first, in batches that do not block the store. */
export async function cancelRunsMatching(
  context: EngineContext,
  projectId: ProjectId,
  filter: ActiveRunFilter,
  count = Infinity,
): Promise<number> {
  const { store } = context;
  let cancelled = 0;
  let afterKey: RunKey | undefined = -1;
  while (afterKey !== undefined && cancelled < count) {
    const page = { afterKey, limit: Math.min(READ_TOGETHER, count - cancelled) };
    const found: { keys: RunKey[]; nextAfterKey?: RunKey } = await store.deadRuns.activeRunKeys({
      ...{ projectId, filter },
      ...page,
    });
    cancelled += await cancelAll(context, found.keys, (key) => store.runs.findRun({ projectId, key }));
    afterKey = found.nextAfterKey;
  }
  return cancelled;
}

/** Returns how many runs this call has ended. */
async function cancelAll<Name>(
  context: EngineContext,
  names: readonly Name[],
  find: (name: Name) => Promise<Run | undefined>,
): Promise<number> {
  let cancelled = 0;
  for (let at = 0; at < names.length; at += ENDED_TOGETHER) {
    let piece = names.slice(at, at + ENDED_TOGETHER);
    await untilCurrent('a workflow run', async () => {
      const found: { name: Name; run: Run }[] = [];
      for (const name of piece) {
        const run = await find(name);
        if (run?.state === 'RUN_STARTED') found.push({ name, run });
      }
      if (found.length === 0) return;
      const runs = found.map(({ run }) => run);
      const ended = await endAll(context, runs, { state: 'RUN_CANCELED' });
      cancelled += ended.filter((as) => as === 'ended').length;
      piece = found.filter((_, index) => ended[index] === 'changed').map(({ name }) => name);
      return piece.length > 0 ? STALE : undefined;
    });
  }
  return cancelled;
}

/** Ends `runs` in one transaction; answers how each ended. Throws `StoreUnavailable`. */
async function endAll(context: EngineContext, runs: readonly Run[], by: Ends): Promise<EndedAs['kind'][]> {
  const { store, clock, active, dispatcher, reports } = context;
  const { intake } = dispatcher;
  const atMs = clock.nowMs();
  const ends: Ending[] = [];
  for (const run of runs) ends.push(await endingOf(store, run, { ...by, atMs }));
  const save = (newMessages: NewMessage[]) => {
    const rest = [...newMessages];
    const endings = ends.map(({ ending, follows }) => ({ ending, follows: rest.splice(0, follows.length) }));
    return store.runs.endRuns({ endings, nowMs: atMs });
  };
  const drafts = await intake.draftsOf(ends.flatMap(({ follows }) => follows));
  const answers = await intake.save(drafts, save, (all) =>
    all.flatMap((as, index) => (as.kind === 'ended' ? as.follows : (ends[index]?.follows ?? []).map(() => undefined))),
  );
  for (const [index, run] of runs.entries()) {
    active.forget(run.projectId, run.id);
    const answer = answers[index];
    if (answer?.kind !== 'ended') continue;
    dispatcher.noteRunEnd(run.key, answer.isMoreLeft);
    reports.runEnded(run, by.state, atMs);
  }
  return answers.map(({ kind }) => kind);
}
