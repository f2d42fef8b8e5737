/** Checks P17: each invocation starts one run, and delivers the result of that run to the invoking run once. */
import type { WorkflowEvidence } from './workflow-checks.ts';
import { type RecordedStep, textOf } from './workflow-library.ts';
import { isGivenUp } from './workflow-revival-checks.ts';
import { ownEntries, type RunStory, type StoredEntry } from './workflow-stories.ts';

export function checkInvocations(evidence: WorkflowEvidence): void {
  const { world, stories, storyByKey } = evidence;
  const invoked = new Set<number>();
  for (const parent of stories) {
    for (const entry of ownEntries(parent, 'invoke')) {
      const { invoke } = entry.message.settings;
      if (!invoke) continue;
      const child = storyByKey.get(invoke.runKey);
      if (!child && isGivenUp(evidence, parent)) continue; // child runs are saved after the journal
      if (!child || child.id !== invoke.runId) {
        world.violate('P17', `run ${parent.id} waits for a run that does not exist`, entry.message.id);
        continue;
      }
      if (invoked.has(child.key) && isOwn(child)) world.violate('P17', `run ${child.id} was invoked twice`);
      invoked.add(child.key);
      checkResult(evidence, parent, entry, child);
    }
  }
  for (const story of stories) {
    if (isOwn(story) && !invoked.has(story.key))
      world.violate('P17', `run ${story.id} was invoked, and nobody waits for it`);
  }
}

/** Whether only one invocation can have started the run. */
function isOwn({ id }: RunStory): boolean {
  return id.startsWith('child-');
}

/**
 * Whether the log has only ends of runs between the ends of the child and its parent. Then one transaction saved both
 * ends, and no result for the ended parent: such a result would be logged between the two ends.
 */
function areTogether(stories: readonly RunStory[], childSeq: number, parentSeq: number): boolean {
  const between = stories.filter(({ end }) => end && end.seq > childSeq && end.seq < parentSeq);
  return between.length === parentSeq - childSeq - 1;
}

function checkResult(
  { world, stories }: WorkflowEvidence,
  parent: RunStory,
  { entryKey, message }: StoredEntry,
  child: RunStory,
): void {
  const result = parent.entryByKey.get(`s${entryKey.slice(1)}`);
  if (!child.end || !parent.end) return;
  // Only a failed parent shows the result in its log after its end.
  const isBefore = child.end.seq < parent.end.seq && !areTogether(stories, child.end.seq, parent.end.seq);
  const isDue = isBefore || parent.state === 'RUN_FAILED';
  if (!result) {
    if (isDue) world.violate('P17', `run ${parent.id} never heard of the end of ${child.id}`, message.id);
    return;
  }
  const { out = '{}' } = JSON.parse(textOf(result.message.body)) as RecordedStep;
  const got = JSON.parse(out) as { body?: string; isFailed: boolean; isCanceled: boolean };
  const isTrue =
    got.body === child.response &&
    got.isFailed === (child.state === 'RUN_FAILED') &&
    got.isCanceled === (child.state === 'RUN_CANCELED');
  if (!isTrue)
    world.violate('P17', `run ${parent.id} heard ${out} of ${child.id}, which is ${child.state}`, result.message.id);
}
