/** Reads the journal of a run from a delivery: the saved results and plans of its steps (contract W 8). */
import { decodeBase64 } from './base64.ts';
import type { RawStep, Step } from './types.ts';

export interface Journal {
  initialPayload: string;
  /** The results, by step id. */
  results: ReadonlyMap<number, Step>;
  /** The plans of parallel groups, by the id of the planned step. */
  plans: ReadonlyMap<number, Step>;
  /** The entry that is being delivered; absent for the initial payload. */
  last?: Step;
  /** Whether `last` repeats an earlier entry and needs no work. */
  isRepeated: boolean;
}

/** Reads the entries of a delivery. The first entry is the payload. Entries that are not steps are skipped. */
export function readJournal([initial, ...entries]: readonly RawStep[]): Journal {
  const results = new Map<number, Step>();
  const plans = new Map<number, Step>();
  let last: Step | undefined;
  let isRepeated = false;
  for (const { body, callType } of entries) {
    if (callType !== 'step') continue;
    last = JSON.parse(decodeBase64(body)) as Step;
    const [recorded, id] = isPlan(last) ? [plans, last.targetStep ?? 0] : [results, last.stepId];
    isRepeated = recorded.has(id);
    if (!isRepeated) recorded.set(id, last);
  }
  return {
    initialPayload: decodeBase64(initial?.body ?? ''),
    results,
    plans,
    ...(last && { last }),
    isRepeated,
  };
}

function isPlan({ stepId }: Step): boolean {
  return stepId === 0;
}

/** The entries up to the entry with `messageId`: the journal that a delivery of this message contains. */
export function entriesUpTo(entries: readonly RawStep[], messageId: string): RawStep[] {
  if (entries.length === 1) return [...entries];
  return entries.slice(0, entries.findIndex((entry) => entry.messageId === messageId) + 1);
}
