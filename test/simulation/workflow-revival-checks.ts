/** Checks that failed runs stay in the DLQ until they are resumed or restarted, and that resumed runs keep recorded steps. */

import type { WorkflowEvidence } from './workflow-checks.ts';
import { textOf } from './workflow-library.ts';
import type { Revival } from './workflow-notes.ts';
import { ownEntries, type RunStory } from './workflow-stories.ts';

export async function checkRevivals({ world, notes, stories }: WorkflowEvidence): Promise<void> {
  const dead = await world.queryAll<{ run_key: number }>('select run_key from dead where run_key is not null');
  const deadRuns = new Set(dead.map((row) => row.run_key));
  for (const story of stories) {
    const revivals = notes.revivals.filter((revival) => revival.request.sent > 0 && isOf(revival, story));
    const done = revivals.filter(({ started }) => started);
    if (done.length > 1) world.violate('P2', `run ${story.id} was revived ${done.length} times`);
    const isDead = deadRuns.has(story.key);
    if (isDead && done.length > 0) world.violate('P3', `run ${story.id} was revived, and is in the DLQ`);
    if (!isDead && story.state === 'RUN_FAILED' && revivals.length === 0) {
      world.violate('P3', `run ${story.id} has failed, and is not in the DLQ`);
    }
    for (const { how, started } of done) {
      const successor = stories.find(({ id, createdAtMs }) => {
        return id === started?.runId && createdAtMs === started.createdAtMs;
      });
      if (!successor)
        world.violate('P1', `run ${story.id} was revived as ${started?.runId}, which is not in the store`);
      else if (how === 'resumeRun') compareJournals({ world }, story, successor);
    }
  }
}

/** The DLQ identifies a run by its dead message. */
function isOf({ dlqId }: Revival, story: RunStory): boolean {
  const key = Number(dlqId.split('-')[1]);
  return ownEntries(story).some(({ message }) => message.key === key);
}

/** P8: steps that the failed run had recorded are not repeated. */
function compareJournals({ world }: Pick<WorkflowEvidence, 'world'>, failed: RunStory, resumed: RunStory): void {
  for (const { kind, entryKey, message } of failed.entries) {
    // An unfinished invocation has two ends: one for the failed run, and a new one for the resumed run.
    const isOfInvocation = failed.entryByKey.has(`i${entryKey.slice(1)}`);
    if (kind !== 'step' || isOfInvocation) continue;
    const same = resumed.entryByKey.get(entryKey);
    if (!same || textOf(same.message.body) !== textOf(message.body)) {
      world.violate('P8', `run ${resumed.id} has other steps than ${failed.id}, which it resumes`, message.id);
    }
  }
}

/**
 * Whether a resumed run may have been cancelled before its whole journal was saved. Nothing of such a run is sent, and no
 * client has its id.
 */
export function isGivenUp({ notes }: WorkflowEvidence, { id, createdAtMs, state, config, events }: RunStory): boolean {
  const isKnown = notes.revivals.some(({ started }) => started?.runId === id && started.createdAtMs === createdAtMs);
  const hasBegun = events.some((event) => event.state === 'ACTIVE');
  return state === 'RUN_CANCELED' && config.predecessor !== undefined && !isKnown && !hasBegun;
}
