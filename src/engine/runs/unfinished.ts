/**
 * What of a journal is still to be done when its run is resumed (contract W 21.3)? Only the journal is asked, not how
 * deliveries went: one that was answered with success after the run had failed came to nothing.
 */
import {
  keyOfCall,
  slotOfCall,
  slotOfCallResult,
  slotOfInvocation,
  slotOfResult,
  slotOfWait,
  stepIdOfSlot,
} from '../../workflow/slots.ts';
import type { EntryKind, MessageKey } from '../model.ts';
import type { OutlinedEntry } from './dead-run-store.ts';

/**
 * Keys of the entries that are to be started again: branches that have no result yet or, when there is none, the latest
 * result, whose delivery moves the run on.
 */
export function unfinishedOf(journal: readonly OutlinedEntry[]): ReadonlySet<MessageKey> {
  const slots = new Set(journal.map(({ slot }) => slot));
  const callSlots = new Map(journal.flatMap(({ kind, key, slot }) => (kind === 'toCallback' ? [[key, slot]] : [])));
  const open = journal.filter((entry) => isOpen(entry, slots, callSlots));
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
  { kind, slot, key }: OutlinedEntry,
  slots: ReadonlySet<string>,
  callSlots: ReadonlyMap<MessageKey, string>,
): boolean {
  switch (kind) {
    case 'plan':
      return !hasBegun(slot, slots);
    case 'toCallback':
      return !slots.has(slotOfCallResult(key));
    case 'fromCallback': {
      const callKey = keyOfCall(slot);
      const callSlot = callKey === undefined ? undefined : callSlots.get(callKey);
      // A call without a step has the result that came after it.
      return callSlot !== undefined && stepIdOfSlot(callSlot) !== undefined && !hasResult(callSlot, slots);
    }
    case 'wait':
    case 'invoke':
      return !hasResult(slot, slots);
    case 'initial':
    case 'step':
    case 'stepConfig':
      return false;
  }
}

/** Whether there is anything of the step that is planned: that is what is to be started again, then. */
function hasBegun(plan: string, slots: ReadonlySet<string>): boolean {
  const stepId = stepIdOfSlot(plan);
  return (
    stepId !== undefined &&
    [slotOfResult, slotOfCall, slotOfWait, slotOfInvocation].some((slotOf) => slots.has(slotOf(stepId)))
  );
}

/** Whether the step that `slot` is of has its result. */
function hasResult(slot: string, slots: ReadonlySet<string>): boolean {
  const stepId = stepIdOfSlot(slot);
  return stepId !== undefined && slots.has(slotOfResult(stepId));
}
