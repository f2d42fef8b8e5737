/**
 * What of a journal is still to be done when its run is resumed (contract W 21.3)? Only the journal is asked, not how
 * deliveries went: one that was answered with success after the run had failed came to nothing.
 */
import {
  entryKeyOfCall,
  entryKeyOfCallResult,
  entryKeyOfInvocation,
  entryKeyOfResult,
  entryKeyOfWait,
  keyOfCall,
  stepIdOfEntryKey,
} from '../../workflow/entry-keys.ts';
import type { EntryKind, MessageKey } from '../model.ts';
import type { OutlinedEntry } from './dead-run-store.ts';

/**
 * Keys of the entries that are to be started again: branches that have no result yet or, when there is none, the latest
 * result, whose delivery moves the run on.
 */
export function unfinishedOf(journal: readonly OutlinedEntry[]): ReadonlySet<MessageKey> {
  const entryKeys = new Set(journal.map(({ entryKey }) => entryKey));
  const callEntryKeys = new Map(
    journal.flatMap(({ kind, key, entryKey }) => (kind === 'toCallback' ? [[key, entryKey]] : [])),
  );
  const open = journal.filter((entry) => isOpen(entry, entryKeys, callEntryKeys));
  if (open.length > 0) return new Set(open.map(({ key }) => key));
  const last = journal.findLast(({ kind }) => MOVES_ON[kind]);
  return new Set(last ? [last.key] : []);
}

/** Whether the delivery of an entry is what a run goes on with, once no branch is open. */
const MOVES_ON: Readonly<Record<EntryKind, boolean>> = {
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
  { kind, entryKey, key }: OutlinedEntry,
  entryKeys: ReadonlySet<string>,
  callEntryKeys: ReadonlyMap<MessageKey, string>,
): boolean {
  switch (kind) {
    case 'plan':
      return !hasBegun(entryKey, entryKeys);
    case 'toCallback':
      return !entryKeys.has(entryKeyOfCallResult(key));
    case 'fromCallback': {
      const callKey = keyOfCall(entryKey);
      const callEntryKey = callKey === undefined ? undefined : callEntryKeys.get(callKey);
      // A call without a step has the result that came after it.
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

/** Whether there is anything of the step that is planned: that is what is to be started again, then. */
function hasBegun(plan: string, entryKeys: ReadonlySet<string>): boolean {
  const stepId = stepIdOfEntryKey(plan);
  return (
    stepId !== undefined &&
    [entryKeyOfResult, entryKeyOfCall, entryKeyOfWait, entryKeyOfInvocation].some((entryKeyOf) =>
      entryKeys.has(entryKeyOf(stepId)),
    )
  );
}

/** Whether the step that `entryKey` is of has its result. */
function hasResult(entryKey: string, entryKeys: ReadonlySet<string>): boolean {
  const stepId = stepIdOfEntryKey(entryKey);
  return stepId !== undefined && entryKeys.has(entryKeyOfResult(stepId));
}
