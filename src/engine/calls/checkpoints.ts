/**
 * Saves checkpoints (contract K 3, [why](../../../docs/decisions/034-a-checkpoint-is-a-settle-with-new-messages.md)).
 * Finished messages are settled as at the end of an attempt. The new journal entries are follow-up messages of the
 * finished ones, like callbacks. One transaction, fenced by the claim tokens, saves all of this. A message that is saved
 * as claimed is not sent: the call continues with the message.
 */

import { ApiError, quotaExceeded } from '../../protocol/errors.ts';
import { dailyLimitReached } from '../../protocol/rate-limits.ts';
import type { Store } from '../../store/store.ts';
import type { Run, RunKey } from '../../workflow/model.ts';
import type { EngineContext } from '../context.ts';
import { backlogKey } from '../lanes/backlog-key.ts';
import { retryWhileStale, STALE } from '../loops/retry-while-stale.ts';
import { acceptContextOf, type Draft } from '../messages/accept.ts';
import type { Saved } from '../messages/accepted.ts';
import type { PublishCommand } from '../messages/publish-command.ts';
import type { ClaimToken, MessageKey, NewMessage, ProjectId, Settlement } from '../model.ts';
import { publishAll } from '../runs/publish.ts';
import { wait } from '../runs/waits/waits.ts';
import type { Checkpointed } from '../stores.ts';
import type { Call, CheckpointInCall, NamedMessages } from './calls.ts';
import { asCallMessage, CheckpointSlots } from './checkpoint-slots.ts';
import type { AppendedEntry, CheckpointCommand, CheckpointResult } from './commands.ts';
import { continueCall } from './continuation.ts';
import { draftOfCall, draftOfStep, type Sender, type StepTemplate, stepTemplateOf, waitCommandOf } from './drafts.ts';

/** Whether the claim belongs, or belonged until recently, to a call of this worker. */
export function hasCall({ dispatcher }: EngineContext, claimToken: ClaimToken): boolean {
  return dispatcher.attempts.calls.find(claimToken) !== undefined;
}

/**
 * Resolves after the commit (P1). Throws only when nothing was saved, and then the call keeps its messages: `ApiError` 412
 * when the journal would be too long, `RateLimited` (429) over the daily limit of the project, `StoreUnavailable`.
 */
export async function checkpoint(
  context: EngineContext,
  projectId: ProjectId,
  command: CheckpointCommand,
): Promise<CheckpointResult> {
  const { dispatcher } = context;
  const { done, failed = [] } = command;
  const [first] = [...done, ...failed];
  const call = first && dispatcher.attempts.calls.find(first.claimToken);
  // If the call is on another worker or has ended, the checkpoint cannot report failures, and adds no messages to the
  // call.
  if (!call) return failed.length > 0 ? { kind: 'lost' } : save(context, projectId, command);
  const { message } = call.first;
  dispatcher.noteActivity(backlogKey(message.projectId, message.origin));
  const named = { done: done.map(tokenOf), failed: failed.map(tokenOf) };
  return call.checkpoint(named, command.hash, (messages) =>
    saveAndContinue(context, projectId, command, { call, claimedForIdleCall: [], ...messages }),
  );
}

async function saveAndContinue(
  context: EngineContext,
  projectId: ProjectId,
  command: CheckpointCommand,
  inCall: CheckpointInCall,
): Promise<CheckpointResult> {
  const isSaveNeeded = command.done.length + command.append.length > 0;
  const result = isSaveNeeded ? await save(context, projectId, command, inCall) : NOTHING_SAVED;
  if (result.kind !== 'saved') return result;
  const continued = await continueCall(context, command, inCall);
  return { ...result, ...continued };
}

function save(
  context: EngineContext,
  projectId: ProjectId,
  command: CheckpointCommand,
  inCall?: CheckpointInCall,
): Promise<CheckpointResult> {
  const { active } = context;
  return retryWhileStale('the workflow run', async () => {
    const run = await runOf(context, projectId, command.runKey, inCall?.call);
    if (!run) return { kind: 'ended' };
    if (inCall) inCall.call.run = run;
    const result = await saveFor(context, run, command, inCall);
    if (result === STALE) {
      active.forget(projectId, run.id);
      if (inCall) inCall.call.run = undefined;
    }
    return result;
  });
}

/** Returns `STALE` if nothing was saved and the run must be read again. */
async function saveFor(
  context: EngineContext,
  run: Run,
  command: CheckpointCommand,
  inCall: CheckpointInCall | undefined,
): Promise<CheckpointResult | typeof STALE> {
  const { store, clock, numbers } = context;
  const { append, callerIp } = command;
  const previous = inCall?.done[0]?.claimed.message ?? (await readPrevious(store, run, command));
  const sender: Sender = { callerIp, previous };
  // A record is unique for its step, so the record may be saved before the rest of the checkpoint, and saved again.
  const records = append.some(isRecord) ? await saveRecords(context, run, append, sender) : NO_RECORDS;
  if (records === 'runOver') return { kind: 'ended' };
  const firstKey = await numbers.take(append.length);
  const drafts = draftsOf(context, run, append, { firstKey, sender, call: inCall?.call });
  const done = settlementsOf(run, command, clock.nowMs());
  const becomesIdle = command.lingerMs !== undefined;
  const { saved, follows } = await saveMessages(context, drafts, done, inCall, becomesIdle);
  switch (saved.kind) {
    case 'stale':
      return { kind: 'lost' };
    case 'runOver':
      return { kind: 'ended' };
    case 'runChanged':
      return STALE;
    case 'journalFull':
      throw quotaExceeded('maxJournalSize', saved.limit);
    case 'overDayLimit':
      throw dailyLimitReached(saved.limit, saved.remaining, clock.nowMs());
    case 'saved': {
      if (inCall) report(context, inCall.done, done);
      const messages = follows.map((follow, index) =>
        entryOf(follow, saved.follows[index], inCall !== undefined && !becomesIdle),
      );
      return { kind: 'saved', entries: append.map((_, at) => records.get(at) ?? messages.shift() ?? NO_ENTRY) };
    }
  }
}

async function saveMessages(
  { store, clock, dispatcher }: EngineContext,
  drafts: Draft[],
  done: Settlement[],
  inCall: CheckpointInCall | undefined,
  becomesIdle: boolean,
): Promise<{ saved: Checkpointed; follows: NewMessage[] }> {
  const sinceMs = clock.elapsedMs;
  const slots =
    inCall &&
    new CheckpointSlots(
      dispatcher,
      inCall.done.map(({ claimed }) => claimed),
      (claimed) => {
        if (becomesIdle) inCall.claimedForIdleCall.push(claimed);
        else inCall.add({ claimed: asCallMessage(claimed, dispatcher), sinceMs });
      },
    );
  let follows: NewMessage[] = [];
  const save = (newMessages: NewMessage[]): Promise<Checkpointed> => {
    follows = newMessages;
    return store.messages.checkpoint({ done, follows, nowMs: clock.nowMs() });
  };
  const savedOf = (result: Checkpointed) => (result.kind === 'saved' ? result.follows : []);
  const saved = await dispatcher.intake.save(drafts, save, savedOf, { mayBeAlone: false, ...(slots && { slots }) });
  if (inCall && slots && (saved.kind === 'saved' || saved.kind === 'stale')) {
    inCall.call.idleSlotClaim = slots.end(inCall.call.isEmpty);
  }
  return { saved, follows };
}

async function runOf(
  { active, store }: EngineContext,
  projectId: ProjectId,
  runKey: RunKey,
  call: Call | undefined,
): Promise<Run | undefined> {
  if (call?.run?.key === runKey) return call.run;
  const id = call?.first.message.settings.run?.id;
  if (id === undefined) {
    const run = await store.runs.findRun({ projectId, key: runKey });
    return run?.state === 'RUN_STARTED' ? run : undefined;
  }
  const { run, isFresh } = await active.find(projectId, id);
  if (run?.key === runKey) return run;
  const latest = isFresh ? run : await active.read(projectId, id);
  return latest?.key === runKey ? latest : undefined;
}

/** The first finished message of the checkpoint. */
async function readPrevious(store: Store, run: Run, { done: [first] }: CheckpointCommand): Promise<Sender['previous']> {
  if (!first) return undefined;
  const [previous] = await store.runs.findRecords({ projectId: run.projectId, keys: [first.key] });
  return previous;
}

/** Saves waits and invocations. Returns their entries by index in `append`. */
async function saveRecords(
  context: EngineContext,
  run: Run,
  append: readonly AppendedEntry[],
  sender: Sender,
): Promise<ReadonlyMap<number, SavedEntry> | 'runOver'> {
  const entries = new Map<number, SavedEntry>();
  try {
    for (const [at, each] of append.entries()) {
      if (each.kind === 'wait') {
        const { messageId } = await wait(context, run.projectId, waitCommandOf(each, run, sender));
        entries.set(at, { messageId });
      } else if (each.kind === 'invoke') {
        const { drafts, accepted } = await publishAll(context, run.projectId, [invocationBy(run, each.command)]);
        const [result] = accepted;
        if (result?.kind === 'overDayLimit')
          throw dailyLimitReached(result.limit, result.remaining, context.clock.nowMs());
        entries.set(at, { messageId: result?.kind === 'duplicate' ? result.messageId : (drafts[0]?.message.id ?? '') });
      }
    }
    return entries;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'run_over') return 'runOver';
    throw error;
  }
}

function draftsOf(
  engine: EngineContext,
  run: Run,
  append: readonly AppendedEntry[],
  { firstKey, sender, call }: { firstKey: MessageKey; sender: Sender; call: Call | undefined },
): Draft[] {
  const context = acceptContextOf(engine, run.projectId);
  return append.flatMap((each, index) => {
    const key = firstKey + index;
    if (each.kind === 'step')
      return [draftOfStep(each, stepTemplateFor(call, run, sender), key, sender.callerIp, context)];
    return each.kind === 'call' ? [draftOfCall(each, run, key, context)] : [];
  });
}

function report({ reports, clock }: EngineContext, messages: NamedMessages['done'], done: readonly Settlement[]): void {
  for (const [index, { claimed, sinceMs }] of messages.entries()) {
    claimed.durationMs = clock.elapsedMs - sinceMs;
    const change = done[index]?.change;
    if (change) reports.settled(claimed, change, clock.nowMs());
  }
}

/** Whether the entry is saved as a record instead of a message. */
function isRecord({ kind }: AppendedEntry): boolean {
  return kind === 'wait' || kind === 'invoke';
}

const NO_RECORDS: ReadonlyMap<number, SavedEntry> = new Map();

/** If the run keeps its trigger's configuration, all steps of a call share one template. */
function stepTemplateFor(call: Call | undefined, run: Run, { previous }: Sender): StepTemplate {
  if (call?.stepTemplate?.run === run) return call.stepTemplate;
  const template = stepTemplateOf(run, previous);
  if (call && run.config.isKept) call.stepTemplate = template;
  return template;
}

function tokenOf({ claimToken }: { claimToken: ClaimToken }): ClaimToken {
  return claimToken;
}

type SavedEntry = Extract<CheckpointResult, { kind: 'saved' }>['entries'][number];

const NOTHING_SAVED: CheckpointResult = { kind: 'saved', entries: [] };
const NO_ENTRY: SavedEntry = { messageId: '' };

/** Settles the finished messages as delivered, as after a response with status 200. */
function settlementsOf({ projectId }: Run, { done }: CheckpointCommand, atMs: number): Settlement[] {
  return done.map(({ key, claimToken }) => ({
    key,
    projectId,
    claimToken,
    change: { next: { kind: 'finished' }, events: [{ atMs, state: 'DELIVERED', responseStatus: 200 }] },
  }));
}

/**
 * `continues`: whether the call continues with the messages that were saved as claimed. It never continues with calls to
 * other services.
 */
function entryOf({ message, state }: NewMessage, saved: Saved | undefined, continues: boolean): SavedEntry {
  if (saved?.state === 'dropped') return { messageId: saved.messageId ?? message.id };
  const { key, id: messageId } = message;
  const isInCall = continues && saved?.state === 'claimed' && message.settings.run?.callType === 'step';
  return isInCall && state.kind === 'claimed'
    ? { messageId, claim: { key, claimToken: state.claimToken } }
    : { messageId };
}

/** The invocation, with `run` as the invoker even if the element names another run: the claim token belongs to `run`. */
function invocationBy(run: Run, command: PublishCommand): PublishCommand {
  const { invocation } = command;
  if (!invocation) return command;
  return { ...command, invocation: { ...invocation, runId: run.id, createdAtMs: run.createdAtMs } };
}
