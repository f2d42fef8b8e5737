/**
 * Checks that all deliveries agree, as seen by the app (P8): the delivered part of a journal never changes, and the journal has
 * one entry for each plan and each result, whatever was killed or published twice.
 */
import { type Repetitions, repetitionsOf } from '../repetitions.ts';
import type { DeliveredEntry, DiaryLine } from './diary.ts';
import type { Payload } from './programs.ts';

type Delivery = Extract<DiaryLine, { kind: 'delivered' }>;

/** The journal of a run, as the app received it. */
export interface Story {
  /** The longest delivered journal, with the entries that idle calls received without a later delivery. */
  journal: readonly DeliveredEntry[];
  /** The tag in the payload; `undefined` before the first delivery. */
  tag: string | undefined;
  /** All marks in the journal. */
  marks: ReadonlySet<string>;
}

export interface JournalVerdict extends Repetitions {
  deliveries: number;
  /** The stories, by the id of the run. */
  stories: Map<string, Story>;
  /** Entries that differ from the same entries in an earlier delivery or earlier in the same call. */
  changed: string[];
  /** Two entries with one entry key. */
  recordedTwice: string[];
  /** A journal that does not end in the delivered message. */
  misdirected: string[];
}

export function judgeJournals(lines: readonly DiaryLine[]): JournalVerdict {
  const deliveries: (Delivery & { incarnation: number })[] = [];
  let incarnation = 0;
  for (const line of lines) {
    if (line.kind === 'server ended') incarnation += 1;
    if (line.kind === 'delivered') deliveries.push({ ...line, incarnation });
  }
  const longest = new Map<string, readonly DeliveredEntry[]>();
  const changed = new Set<string>();
  const misdirected = new Set<string>();
  for (const { runId, messageId, journal } of deliveries) {
    const known = longest.get(runId) ?? [];
    if (!longest.has(runId)) longest.set(runId, known);
    if (journal === undefined) continue;
    if (journal.at(-1)?.messageId !== messageId) misdirected.add(`${messageId} of ${runId}`);
    const at = journal.findIndex((entry, position) => known[position] && !isSame(entry, known[position]));
    if (at >= 0) changed.add(`entry ${at} of ${runId}`);
    if (journal.length > known.length) longest.set(runId, journal);
  }
  for (const line of lines) {
    if (line.kind !== 'kept' && line.kind !== 'handed over') continue;
    const { runId } = line;
    for (const entry of entriesOf(line)) {
      const journal = longest.get(runId) ?? [];
      const known = journal.find(({ messageId }) => messageId === entry.messageId);
      if (!known) longest.set(runId, [...journal, entry]);
      else if (!isSame(entry, known)) changed.add(`${entry.messageId} of ${runId}, within a call`);
    }
  }
  const stories = new Map([...longest].map(([runId, journal]) => [runId, storyOf(journal)]));
  return {
    deliveries: deliveries.length,
    stories,
    changed: [...changed],
    recordedTwice: [...longest].flatMap(([runId, journal]) =>
      repeatedSlots(journal).map((slot) => `${slot} of ${runId}`),
    ),
    misdirected: [...misdirected],
    ...repetitionsOf(deliveries),
  };
}

/** The journal entries that a call received after its delivery. */
function entriesOf(line: Extract<DiaryLine, { kind: 'kept' | 'handed over' }>): DeliveredEntry[] {
  if (line.kind === 'handed over') return line.entries;
  return [{ messageId: line.messageId, body: Buffer.from(line.body).toString('base64'), callType: 'step' }];
}

function isSame(a: DeliveredEntry, b: DeliveredEntry): boolean {
  return a.messageId === b.messageId && a.body === b.body && a.callType === b.callType;
}

function storyOf(journal: readonly DeliveredEntry[]): Story {
  const [initial] = journal;
  return {
    journal,
    tag: initial && (JSON.parse(textOf(initial.body)) as Payload).tag,
    marks: new Set(stepsOf(journal).flatMap(marksOfStep)),
  };
}

function repeatedSlots(journal: readonly DeliveredEntry[]): string[] {
  const slots = stepsOf(journal).map(({ stepId, targetStep }) =>
    stepId === 0 ? `plan of step ${targetStep}` : `result of step ${stepId}`,
  );
  return slots.filter((slot, index) => slots.indexOf(slot) < index);
}

/** The journal without the payload, and without the entries of calls to third parties. */
function stepsOf(journal: readonly DeliveredEntry[]): Step[] {
  return journal
    .slice(1)
    .filter(({ callType }) => callType === 'step')
    .map(({ body }) => JSON.parse(textOf(body)) as Step);
}

/** The marks at the ends of the lines that a run returns. */
export function marksIn(text: string): string[] {
  return text.match(/#[0-9a-f]{10}/g) ?? [];
}

function marksOfStep({ stepType, out }: Step): string[] {
  if (typeof out !== 'string') return [];
  if (stepType === 'Wait') return marksIn(textOf(out));
  if (stepType === 'WaitForWebhook') return marksIn(textOf((JSON.parse(textOf(out)) as { body?: string }).body ?? ''));
  return marksIn(out);
}

function textOf(base64: string): string {
  return Buffer.from(base64, 'base64').toString();
}

/** A step as it was published (contract W 8.2). */
interface Step {
  stepId: number;
  stepType: string;
  targetStep?: number;
  out?: unknown;
}
