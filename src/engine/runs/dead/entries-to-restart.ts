/**
 * Selects the journal entries that are restarted when a run is resumed (contract W 21.3). Only the journal decides, not the
 * outcomes of deliveries: a success after the run had failed has no effect.
 */
import {
  entryKeyOfCall,
  entryKeyOfCallResult,
  entryKeyOfInvocation,
  entryKeyOfResult,
  entryKeyOfWait,
  keyOfCall,
  stepIdOfEntryKey,
} from '../../../workflow/entry-keys.ts';
import type { EntryKind, MessageKey } from '../../model.ts';
import type { EntryOutline } from './dead-run-store.ts';

/**
 * The keys of the entries to restart: each branch without a result or, if every branch has its result, the latest entry
 * whose delivery continues the run.
 */
export function entriesToRestart(journal: readonly EntryOutline[]): ReadonlySet<MessageKey> {
  const entryKeys = new Set(journal.map(({ entryKey }) => entryKey));
  const callEntryKeys = new Map(
    journal.flatMap(({ kind, key, entryKey }) => (kind === 'toCallback' ? [[key, entryKey]] : [])),
  );
  const open = journal.filter((entry) => isOpen(entry, entryKeys, callEntryKeys));
  if (open.length > 0) return new Set(open.map(({ key }) => key));
  const last = journal.findLast(({ kind }) => CONTINUES_RUN[kind]);
  return new Set(last ? [last.key] : []);
}

/** For each kind of entry, whether the delivery of such an entry continues a run in which every branch has its result. */
const CONTINUES_RUN: Readonly<Record<EntryKind, boolean>> = {
  initial: true,
  step: true,
  stepConfig: true,
  fromCallback: true,
  plan: false,
  toCallback: false,
  wait: false,
  invoke: false,
};

function isOpen(
  { kind, entryKey, key }: EntryOutline,
  entryKeys: ReadonlySet<string>,
  callEntryKeys: ReadonlyMap<MessageKey, string>,
): boolean {
  switch (kind) {
    case 'plan':
      return !hasStarted(entryKey, entryKeys);
    case 'toCallback':
      return !entryKeys.has(entryKeyOfCallResult(key));
    case 'fromCallback': {
      const callKey = keyOfCall(entryKey);
      const callEntryKey = callKey === undefined ? undefined : callEntryKeys.get(callKey);
      // A call that belongs to no step does not wait for the result of a step.
      return (
        callEntryKey !== undefined &&
        stepIdOfEntryKey(callEntryKey) !== undefined &&
        !hasResult(callEntryKey, entryKeys)
      );
    }
    case 'wait':
    case 'invoke':
      return !hasResult(entryKey, entryKeys);
    case 'initial':
    case 'step':
    case 'stepConfig':
      return false;
  }
}

/** Whether the planned step has an entry of its own. If so, this entry is restarted instead of the plan. */
function hasStarted(plan: string, entryKeys: ReadonlySet<string>): boolean {
  const stepId = stepIdOfEntryKey(plan);
  return (
    stepId !== undefined &&
    [entryKeyOfResult, entryKeyOfCall, entryKeyOfWait, entryKeyOfInvocation].some((entryKeyOf) =>
      entryKeys.has(entryKeyOf(stepId)),
    )
  );
}

/** Whether the step of `entryKey` has its result. */
function hasResult(entryKey: string, entryKeys: ReadonlySet<string>): boolean {
  const stepId = stepIdOfEntryKey(entryKey);
  return stepId !== undefined && entryKeys.has(entryKeyOfResult(stepId));
}
