/** Retries parked runs immediately: code that fits their journals may have been deployed (contract K 7.5). */
import type { RunKey } from '../../workflow/model.ts';
import type { EngineContext } from '../context.ts';
import type { ProjectId } from '../model.ts';

/** The maximum of messages that are made due concurrently, each in a small transaction. */
const BATCH = 100;

/** Resumes the run if it is parked. Returns whether the run was parked, or undefined if no such run is active. */
export async function resumeParkedRun(
  context: EngineContext,
  projectId: ProjectId,
  id: string,
): Promise<boolean | undefined> {
  const run = await context.store.runs.findActiveRun({ projectId, id });
  return run && (await resumeParkedRuns(context, projectId, run.key)) > 0;
}

/** Resumes all parked runs of the project, or only the run with `runKey`. Returns the number of resumed runs. */
export async function resumeParkedRuns(
  { store, clock }: EngineContext,
  projectId: ProjectId,
  runKey?: RunKey,
): Promise<number> {
  let resumed = 0;
  let latestRunKey = -1;
  for (let after = { runKey: -1, key: -1 }; ; ) {
    const parked = await store.runs.findParked({ projectId, runKey, after, limit: BATCH });
    const results = await Promise.all(
      parked.map(({ id }) => store.messages.makeDue({ projectId, id, nowMs: clock.nowMs() })),
    );
    for (const [index, message] of parked.entries()) {
      if (results[index] === 'due' && message.runKey !== latestRunKey) {
        latestRunKey = message.runKey;
        resumed += 1;
      }
      after = message;
    }
    if (parked.length < BATCH) return resumed;
  }
}
