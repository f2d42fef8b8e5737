/** What of a run is kept already: the steps of the journal that a delivery brings (contract W 8). */
import { decodeBase64 } from './base64.ts';
import type { RawStep, Step } from './types.ts';

export interface Journal {
  initialPayload: string;
  /** The results, by the id of their step. */
  results: ReadonlyMap<number, Step>;
  /** The plans of groups, by the id of the step that each is for. */
  plans: ReadonlyMap<number, Step>;
  /** The entry that is delivered; absent: the initial payload. */
  last?: Step;
  /** `last` repeats an earlier entry: nothing is to be done for it. */
  isRepeated: boolean;
}

/** Reads the entries of a delivery. The first one is the payload; entries that are no steps are passed over. */
export function readJournal([initial, ...entries]: readonly RawStep[]): Journal {
  const results = new Map<number, Step>();
  const plans = new Map<number, Step>();
  let last: Step | undefined;
  let isRepeated = false;
  for (const { body, callType } of entries) {
    if (callType !== 'step') continue;
    last = JSON.parse(decodeBase64(body)) as Step;
    const [known, id] = isPlan(last) ? [plans, last.targetStep ?? 0] : [results, last.stepId];
    isRepeated = known.has(id);
    if (!isRepeated) known.set(id, last);
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

/** The entries up to the one with `messageId`: what a delivery of that message brings. */
export function upTo(entries: readonly RawStep[], messageId: string): RawStep[] {
  if (entries.length === 1) return [...entries];
  return entries.slice(0, entries.findIndex((entry) => entry.messageId === messageId) + 1);
}
