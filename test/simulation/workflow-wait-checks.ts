/** Checks P17: each wait ends by a notification or its deadline, and no notification is lost. */
import type { Millis } from '../../src/engine/model.ts';
import { CLOCK_PRECISION_MS } from './wall-clock.ts';
import type { WorkflowEvidence } from './workflow-checks.ts';
import { type RecordedStep, textOf } from './workflow-library.ts';
import type { Notification, WaitNote } from './workflow-notes.ts';
import { ownEntries, type RunStory, type StoredEntry } from './workflow-stories.ts';
import type { World } from './world.ts';

/** A registered wait, with its result if it ended before its run. */
interface Wait {
  story: RunStory;
  entry: StoredEntry;
  eventId: string;
  deadlineMs: Millis;
  result: { entry: StoredEntry; event: string | undefined } | undefined;
  /** The program's requests to wait; empty if no response arrived. */
  notes: WaitNote[];
}

export function checkWaits(evidence: WorkflowEvidence): void {
  const waits = waitsOf(evidence);
  for (const wait of waits) {
    checkEnd(evidence, wait);
    checkNotPassedOver(evidence, wait);
  }
  checkPendingEvents(evidence, waits);
}

function waitsOf({ stories, notes }: WorkflowEvidence): Wait[] {
  return stories.flatMap((story) =>
    ownEntries(story, 'wait').flatMap((entry): Wait[] => {
      const { wait } = entry.message.settings;
      if (!wait) return [];
      const stepId = Number(entry.entryKey.slice(1));
      const { eventId, deadlineMs } = wait;
      const known = notes.waits.filter(
        (note) => note.runId === story.id && note.createdAtMs === story.createdAtMs && note.stepId === stepId,
      );
      return [{ story, entry, eventId, deadlineMs, result: resultOf(story, stepId), notes: known }];
    }),
  );
}

function resultOf({ entryByKey }: RunStory, stepId: number): Wait['result'] {
  const entry = entryByKey.get(`s${stepId}`);
  if (!entry) return undefined;
  const { out, waitTimeout } = JSON.parse(textOf(entry.message.body)) as RecordedStep;
  return { entry, event: waitTimeout ? undefined : Buffer.from(out ?? '', 'base64').toString('utf8') };
}

function checkEnd({ world, notes }: WorkflowEvidence, { story, eventId, deadlineMs, result }: Wait): void {
  if (!result) {
    if (!story.end) world.violate('P14', `run ${story.id} waits for ever`);
    return;
  }
  const { entry, event } = result;
  if (event === undefined) {
    if (entry.atMs < deadlineMs) {
      world.violate('P17', `a wait timed out ${deadlineMs - entry.atMs} ms too early`, entry.message.id);
    }
    return;
  }
  const source = notes.notifications.find((each) => each.event === event);
  const isMeant =
    source?.eventId === eventId &&
    (source.run === undefined || source.run.runId === story.id) &&
    source.request.sent > 0;
  if (!isMeant) world.violate('P17', `a wait was ended by ${event}, which nobody meant for it`, entry.message.id);
}

/** A notification wakes every registered wait that has not ended before. */
function checkNotPassedOver({ world, notes }: WorkflowEvidence, wait: Wait): void {
  const { story, eventId, result } = wait;
  if (world.jumps.length > 0) return;
  const registeredAtMs = Math.min(...wait.notes.map(({ request }) => acknowledgedAt(request)));
  const slackMs = world.isShared ? CLOCK_PRECISION_MS : 0;
  const endedAtMs = elapsedOf(world, result?.entry.atMs ?? story.end?.atMs ?? Infinity) - slackMs;
  const passing = notes.notifications.find(
    (each) =>
      each.eventId === eventId &&
      (each.run === undefined || each.run.runId === story.id) &&
      each.request.startAtMs > registeredAtMs &&
      acknowledgedAt(each.request) < endedAtMs,
  );
  if (passing) world.violate('P17', `${passing.event} passed over a wait for it`, wait.entry.message.id);
}

/** Pending events of a run are taken by its waits, each once and in order. */
function checkPendingEvents(evidence: WorkflowEvidence, waits: readonly Wait[]): void {
  const { world, notes } = evidence;
  const saved = notes.notifications.filter(
    ({ isSaved, request }) => isSaved && request.result === 'acked' && request.sent === 1,
  );
  for (const pendingEvent of saved) {
    const mine = waits.filter(({ story, eventId }) => isFor(pendingEvent, story, eventId));
    const taken = mine.filter(({ result }) => result?.event === pendingEvent.event);
    if (taken.length > 1) world.violate('P17', `${pendingEvent.event} was saved once, and taken ${taken.length} times`);
    const takenAt = taken[0]?.entry.position ?? Infinity;
    for (const { entry, result, notes: known } of mine) {
      const isLater =
        known.length > 0 && known.every(({ request }) => request.startAtMs > acknowledgedAt(pendingEvent.request));
      if (!isLater || entry.position >= takenAt || !result) continue;
      const other = notes.notifications.find(({ event }) => event === result.event);
      if (other && other.request.startAtMs <= acknowledgedAt(pendingEvent.request)) continue;
      world.violate('P17', `${pendingEvent.event} was saved, and a wait passed it over`, entry.message.id);
    }
  }
}

function isFor({ eventId, run }: Notification, story: RunStory, waitedFor: string): boolean {
  return eventId === waitedFor && run?.runId === story.id && run.createdAtMs === story.createdAtMs;
}

function acknowledgedAt({ result, respondedAtMs }: { result: string; respondedAtMs: Millis }): Millis {
  return result === 'acked' ? respondedAtMs : Infinity;
}

/** Converts a wall-clock time to elapsed time. Valid only if the clock was never set. */
export function elapsedOf({ clock }: World, wallMs: Millis): Millis {
  return wallMs - (clock.nowMs() - clock.elapsedMs);
}
