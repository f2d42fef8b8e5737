/**
 * What of a journal is still to be done when its run is resumed (workflow.md 21.3)? Only the journal is asked, not how
 * deliveries went: one that was answered with success after the run had failed came to nothing.
 */
import type { OutlinedEntry } from '../dead-runs.ts';
import type { EntryKind, MessageKey } from '../model.ts';

/**
 * Keys of the entries that are to be started again: branches that have no result yet or, when there is none, the latest
 * result, whose delivery moves the run on.
 */
export function unfinishedOf(journal: readonly OutlinedEntry[]): ReadonlySet<MessageKey> {
  const slots = new Set(journal.map(({ slot }) => slot));
  const slotOfCall = new Map(journal.flatMap(({ kind, key, slot }) => (kind === 'toCallback' ? [[key, slot]] : [])));
  const open = journal.filter((entry) => isOpen(entry, slots, slotOfCall));
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
  slotOfCall: ReadonlyMap<MessageKey, string>,
): boolean {
  const named = slot.slice(1);
  switch (kind) {
    case 'plan':
      // What it has begun is what is to be started again.
      return !['s', 'c', 'w', 'i'].some((letter) => slots.has(letter + named));
    case 'toCallback':
      return !slots.has(`f${key}`);
    case 'fromCallback': {
      // Its slot names the call, whose slot names the step; a call without a step has the result that came after it.
      const call = slotOfCall.get(Number(named));
      return call?.startsWith('c') === true && !slots.has(`s${call.slice(1)}`);
    }
    case 'wait':
    case 'invoke':
      return !slots.has(`s${named}`);
    case 'initial':
    case 'step':
    case 'stepConfig':
      return false;
  }
}
