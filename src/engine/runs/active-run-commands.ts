/** Commands of clients that read, complete or cancel active runs, one or many at a time (contract W 17.2). */
import type { EndState, JournalEntry, Run, RunKey } from '../../workflow/model.ts';
import type { EngineContext } from '../context.ts';
import { retryWhileStale, STALE } from '../loops/retry-while-stale.ts';
import type { Millis, NewMessage, ProjectId } from '../model.ts';
import { wasCreatedAt } from './active-runs.ts';
import type { ActiveRunFilter } from './dead/dead-run-store.ts';
import { draftEnding, type EndingDraft, type RunEnd } from './endings/endings.ts';
import type { RunEndResult } from './stores.ts';

/** The maximum of runs that a bulk cancel reads with one query. */
const READ_BATCH = 500;
/** The maximum of runs that one transaction ends. Such a transaction delays publishes by about a millisecond. */
const END_BATCH = 20;

/** The state and the result with which a command ends a run. */
type EndByCommand = Pick<RunEnd, 'response'> & { state: Exclude<EndState, 'RUN_FAILED'> };

/** Selects one of several successive runs with the same id. If both members are absent, selects the active run. */
export interface RunSelector {
  createdAtMs?: Millis | undefined;
  runKey?: RunKey | undefined;
}

/** The properties of an active run that the API needs. */
export interface ActiveRun {
  /** Whether the bodies of the run are redacted. */
  hidesBodies: boolean;
}

/** Returns undefined if no such run is active. A run that has just ended may still be returned. */
export async function findActiveRun(
  { active }: EngineContext,
  projectId: ProjectId,
  runId: string,
): Promise<ActiveRun | undefined> {
  const { run } = await active.find(projectId, runId);
  return run && { hidesBodies: run.config.redact?.body ?? false };
}

/**
 * Returns the whole journal, in the form of a delivery. Returns undefined if no run with this id (and `runKey`, if given)
 * is active.
 */
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
  const end = { state: 'RUN_SUCCESS', ...(response.length > 0 && { response }) } as const;
  await endRun(context, projectId, runId, { createdAtMs }, end);
}

/** Cancels the run. Returns false if no such run is active. */
export function cancelRun(
  context: EngineContext,
  projectId: ProjectId,
  runId: string,
  selector: RunSelector = {},
): Promise<boolean> {
  return endRun(context, projectId, runId, selector, { state: 'RUN_CANCELED' });
}

function endRun(
  context: EngineContext,
  projectId: ProjectId,
  runId: string,
  { createdAtMs, runKey }: RunSelector,
  end: EndByCommand,
): Promise<boolean> {
  const { active } = context;
  return retryWhileStale('the workflow run', async () => {
    const { run, isFresh } = await active.find(projectId, runId);
    const isSelected = run && wasCreatedAt(run, createdAtMs) && (runKey ?? run.key) === run.key;
    const [result = 'over'] = isSelected ? await endRuns(context, [run], end) : [];
    if (result === 'ended') return true;
    active.forget(projectId, runId);
    return result === 'over' && isFresh ? false : STALE;
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
    const page = { afterKey, limit: Math.min(READ_BATCH, count - cancelled) };
    const candidates: { keys: RunKey[]; nextAfterKey?: RunKey } = await store.deadRuns.activeRunKeys({
      ...{ projectId, filter },
      ...page,
    });
    cancelled += await cancelAll(context, candidates.keys, (key) => store.runs.findRun({ projectId, key }));
    afterKey = candidates.nextAfterKey;
  }
  return cancelled;
}

/** Cancels the active runs with these `names`, in batches. Returns the number of cancelled runs. */
async function cancelAll<Name>(
  context: EngineContext,
  names: readonly Name[],
  find: (name: Name) => Promise<Run | undefined>,
): Promise<number> {
  let cancelled = 0;
  for (let at = 0; at < names.length; at += END_BATCH) {
    let batch = names.slice(at, at + END_BATCH);
    await retryWhileStale('a workflow run', async () => {
      const active: { name: Name; run: Run }[] = [];
      for (const name of batch) {
        const run = await find(name);
        if (run?.state === 'RUN_STARTED') active.push({ name, run });
      }
      if (active.length === 0) return;
      const runs = active.map(({ run }) => run);
      const results = await endRuns(context, runs, { state: 'RUN_CANCELED' });
      cancelled += results.filter((result) => result === 'ended').length;
      batch = active.filter((_, index) => results[index] === 'changed').map(({ name }) => name);
      return batch.length > 0 ? STALE : undefined;
    });
  }
  return cancelled;
}

/** Ends `runs` in one transaction. Returns the result for each run. Throws `StoreUnavailable`. */
async function endRuns(
  context: EngineContext,
  runs: readonly Run[],
  end: EndByCommand,
): Promise<RunEndResult['kind'][]> {
  const { store, clock, active, dispatcher, reports } = context;
  const { intake } = dispatcher;
  const atMs = clock.nowMs();
  const drafted: EndingDraft[] = [];
  for (const run of runs) drafted.push(await draftEnding(store, run, { ...end, atMs }));
  const save = (newMessages: NewMessage[]) => {
    const remaining = [...newMessages];
    const endings = drafted.map(({ ending, follows }) => ({ ending, follows: remaining.splice(0, follows.length) }));
    return store.runs.endRuns({ endings, nowMs: atMs });
  };
  const drafts = await intake.draftsOf(drafted.flatMap(({ follows }) => follows));
  const results = await intake.save(drafts, save, (all) =>
    all.flatMap((result, index) =>
      result.kind === 'ended' ? result.follows : (drafted[index]?.follows ?? []).map(() => undefined),
    ),
  );
  for (const [index, run] of runs.entries()) {
    active.forget(run.projectId, run.id);
    const result = results[index];
    if (result?.kind !== 'ended') continue;
    dispatcher.noteRunEnd(run.key, result.isMoreLeft);
    reports.runEnded(run, end.state, atMs);
  }
  return results.map(({ kind }) => kind);
}
