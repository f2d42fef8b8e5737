/**
 * Saves checkpoints (contract K 3, [why](../../../docs/decisions/034-a-checkpoint-is-a-settle-with-follows.md)). What is done
 * is settled as by the end of an attempt, and what enters the journal follows from it as callbacks do: in one transaction,
 * fenced by the claims. A message that is saved as claimed is not sent: the call goes on with it.
 */

import { ApiError, quotaExceeded } from '../../protocol/errors.ts';
import { dailyLimitReached } from '../../protocol/rate-limits.ts';
import type { Store } from '../../store/store.ts';
import type { Run, RunKey } from '../../workflow/model.ts';
import { lineOf } from '../lanes/origin-line.ts';
import type { AcceptContext, Draft } from '../messages/accept.ts';
import type { Saved } from '../messages/accepted.ts';
import type { Intake } from '../messages/intake.ts';
import type { PublishCommand } from '../messages/publish-command.ts';
import type { ClaimToken, MessageKey, NewMessage, ProjectId, Settlement } from '../model.ts';
import type { Clock } from '../ports.ts';
import type { Reports } from '../reports.ts';
import type { ActiveRuns } from '../runs/active-runs.ts';
import type { Publisher } from '../runs/publish.ts';
import type { WaiterCommands } from '../runs/run-commands.ts';
import type { Checkpointed } from '../stores.ts';
import { STALE, untilCurrent } from '../until-current.ts';
import type { Numbers } from '../workers/numbers.ts';
import type { Around, Call, Calls, Given } from './calls.ts';
import type { Appended, CheckpointAnswer, CheckpointCommand, CheckpointCommands } from './commands.ts';
import { draftOfCall, draftOfStep, type Sender, type StepParts, stepPartsOf, waitOf } from './drafts.ts';
import { GoingOn, type StayingSlots } from './going-on.ts';
import { CheckpointSlots, heldOf } from './places.ts';

export interface CheckpointDeps {
  store: {
    messages: Pick<Store['messages'], 'checkpoint'>;
    runs: Pick<Store['runs'], 'findRun' | 'findRecords'>;
  };
  /** With the calls that are under way here. */
  dispatcher: StayingSlots & { readonly attempts: { readonly calls: Calls }; readonly intake: Intake };
  active: ActiveRuns;
  publisher: Publisher;
  waits: Pick<WaiterCommands, 'wait'>;
  numbers: Numbers;
  clock: Clock;
  reports: Reports;
  contextOf(projectId: ProjectId): AcceptContext;
}

export class Checkpoints implements CheckpointCommands {
  readonly #deps: CheckpointDeps;
  readonly #goingOn: GoingOn;

  constructor(deps: CheckpointDeps) {
    this.#deps = deps;
    this.#goingOn = new GoingOn(deps);
  }

  hasCall(claimToken: ClaimToken): boolean {
    return this.#deps.dispatcher.attempts.calls.find(claimToken) !== undefined;
  }

  async checkpoint(projectId: ProjectId, command: CheckpointCommand): Promise<CheckpointAnswer> {
    const { dispatcher } = this.#deps;
    const { done, failed = [] } = command;
    const [first] = [...done, ...failed];
    const call = first && dispatcher.attempts.calls.find(first.claimToken);
    // The call is under way on another worker, or is over. It goes on with nothing then, and tells its end by itself.
    if (!call) return failed.length > 0 ? { kind: 'lost' } : this.#save(projectId, command);
    const { message } = call.first;
    dispatcher.noteHeard(lineOf(message.projectId, message.origin));
    const named = { done: done.map(tokenOf), failed: failed.map(tokenOf) };
    return call.checkpoint(named, command.hash, (given) =>
      this.#carryOut(projectId, command, { call, arrivals: [], ...given }),
    );
  }

  async #carryOut(projectId: ProjectId, command: CheckpointCommand, around: Around): Promise<CheckpointAnswer> {
    const saves = command.done.length + command.append.length > 0;
    const answer = saves ? await this.#save(projectId, command, around) : NOTHING_SAVED;
    if (answer.kind !== 'saved') return answer;
    const next = await this.#goingOn.after(command, around);
    return { ...answer, ...(next && { next: next.comes }) };
  }

  async #save(projectId: ProjectId, command: CheckpointCommand, around?: Around): Promise<CheckpointAnswer> {
    const { active } = this.#deps;
    return untilCurrent('the workflow run', async () => {
      const run = await this.#runOf(projectId, command.runKey, around?.call);
      if (!run) return { kind: 'ended' };
      if (around) around.call.run = run;
      const answer = await this.#saveFor(run, command, around);
      if (answer === STALE) {
        active.forget(projectId, run.id);
        if (around) around.call.run = undefined;
      }
      return answer;
    });
  }

  /** `STALE`: nothing was saved, and the run must be read again. */
  async #saveFor(
    run: Run,
    command: CheckpointCommand,
    around: Around | undefined,
  ): Promise<CheckpointAnswer | typeof STALE> {
    const { clock } = this.#deps;
    const { append, callerIp } = command;
    const previous = around?.done[0]?.claimed.message ?? (await this.#readPrevious(run, command));
    const sender: Sender = { callerIp, previous };
    // Each is kept once for its step, so it may be saved before what is done is, and again.
    const records = append.some(isRecord) ? await this.#saveRecords(run, append, sender) : NO_RECORDS;
    if (records === 'runOver') return { kind: 'ended' };
    const firstKey = await this.#deps.numbers.take(append.length);
    const drafts = this.#draftsOf(run, append, { firstKey, sender, call: around?.call });
    const done = settlementsOf(run, command, clock.nowMs());
    const stays = command.lingerMs !== undefined;
    const { saved, follows } = await this.#saveMessages(drafts, done, around, stays);
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
        if (around) this.#report(around.done, done);
        const messages = follows.map((follow, index) =>
          entryOf(follow, saved.follows[index], around !== undefined && !stays),
        );
        return { kind: 'saved', entries: append.map((_, at) => records.get(at) ?? messages.shift() ?? NONE) };
      }
    }
  }

  async #saveMessages(
    drafts: Draft[],
    done: Settlement[],
    around: Around | undefined,
    stays: boolean,
  ): Promise<{ saved: Checkpointed; follows: NewMessage[] }> {
    const { store, clock, dispatcher } = this.#deps;
    const sinceMs = clock.elapsedMs;
    const slots =
      around &&
      new CheckpointSlots(
        dispatcher,
        around.done.map(({ claimed }) => claimed),
        (claimed) => {
          if (stays) around.arrivals.push(claimed);
          else around.hold({ claimed: heldOf(claimed, dispatcher), sinceMs });
        },
      );
    let follows: NewMessage[] = [];
    const save = (newMessages: NewMessage[]): Promise<Checkpointed> => {
      follows = newMessages;
      return store.messages.checkpoint({ done, follows, nowMs: clock.nowMs() });
    };
    const savedOf = (answer: Checkpointed) => (answer.kind === 'saved' ? answer.follows : []);
    const saved = await dispatcher.intake.save(drafts, save, savedOf, { mayBeAlone: false, ...(slots && { slots }) });
    if (around && slots && (saved.kind === 'saved' || saved.kind === 'stale')) {
      around.call.rest = slots.end(around.call.isEmpty);
    }
    return { saved, follows };
  }

  async #runOf(projectId: ProjectId, runKey: RunKey, call: Call | undefined): Promise<Run | undefined> {
    const { active, store } = this.#deps;
    if (call?.run?.key === runKey) return call.run;
    const id = call?.first.message.settings.run?.id;
    if (id === undefined) {
      const run = await store.runs.findRun({ projectId, key: runKey });
      return run?.state === 'RUN_STARTED' ? run : undefined;
    }
    const { run, isFresh } = await active.find(projectId, id);
    if (run?.key === runKey) return run;
    const read = isFresh ? run : await active.read(projectId, id);
    return read?.key === runKey ? read : undefined;
  }

  /** The message that is done first. */
  async #readPrevious(run: Run, { done: [first] }: CheckpointCommand): Promise<Sender['previous']> {
    if (!first) return undefined;
    const [previous] = await this.#deps.store.runs.findRecords({ projectId: run.projectId, keys: [first.key] });
    return previous;
  }

  /** Saves waits and invocations; answers by their place. */
  async #saveRecords(
    run: Run,
    append: readonly Appended[],
    sender: Sender,
  ): Promise<ReadonlyMap<number, Entry> | 'runOver'> {
    const { waits, publisher, clock } = this.#deps;
    const entries = new Map<number, Entry>();
    try {
      for (const [at, each] of append.entries()) {
        if (each.kind === 'wait') {
          const { messageId } = await waits.wait(run.projectId, waitOf(each, run, sender));
          entries.set(at, { messageId });
        } else if (each.kind === 'invoke') {
          const { drafts, accepted } = await publisher.publish(run.projectId, [invocationBy(run, each.command)]);
          const [as] = accepted;
          if (as?.kind === 'overDayLimit') throw dailyLimitReached(as.limit, as.remaining, clock.nowMs());
          entries.set(at, { messageId: as?.kind === 'duplicate' ? as.messageId : (drafts[0]?.message.id ?? '') });
        }
      }
      return entries;
    } catch (error) {
      if (error instanceof ApiError && error.code === 'run_over') return 'runOver';
      throw error;
    }
  }

  #draftsOf(
    run: Run,
    append: readonly Appended[],
    { firstKey, sender, call }: { firstKey: MessageKey; sender: Sender; call: Call | undefined },
  ): Draft[] {
    const context = this.#deps.contextOf(run.projectId);
    return append.flatMap((each, index) => {
      const key = firstKey + index;
      if (each.kind === 'step')
        return [draftOfStep(each, stepPartsIn(call, run, sender), key, sender.callerIp, context)];
      return each.kind === 'call' ? [draftOfCall(each, run, key, context)] : [];
    });
  }

  #report(held: Given['done'], done: readonly Settlement[]): void {
    const { reports, clock } = this.#deps;
    for (const [index, { claimed, sinceMs }] of held.entries()) {
      claimed.durationMs = clock.elapsedMs - sinceMs;
      const change = done[index]?.change;
      if (change) reports.settled(claimed, change, clock.nowMs());
    }
  }
}

/** What is saved as a record, and is no message. */
function isRecord({ kind }: Appended): boolean {
  return kind === 'wait' || kind === 'invoke';
}

const NO_RECORDS: ReadonlyMap<number, Entry> = new Map();

/** Where the run keeps what its trigger fixed, all steps of a call have the same. */
function stepPartsIn(call: Call | undefined, run: Run, { previous }: Sender): StepParts {
  if (call?.stepParts?.run === run) return call.stepParts;
  const parts = stepPartsOf(run, previous);
  if (call && run.config.isKept) call.stepParts = parts;
  return parts;
}

function tokenOf({ claimToken }: { claimToken: ClaimToken }): ClaimToken {
  return claimToken;
}

type Entry = Extract<CheckpointAnswer, { kind: 'saved' }>['entries'][number];

const NOTHING_SAVED: CheckpointAnswer = { kind: 'saved', entries: [] };
const NONE: Entry = { messageId: '' };

/** What is done is delivered with the checkpoint, as if an answer of 200 had come. */
function settlementsOf({ projectId }: Run, { done }: CheckpointCommand, atMs: number): Settlement[] {
  return done.map(({ key, claimToken }) => ({
    key,
    projectId,
    claimToken,
    change: { next: { kind: 'finished' }, events: [{ atMs, state: 'DELIVERED', responseStatus: 200 }] },
  }));
}

/** `goesOn`: the call goes on with what was saved as claimed, unless somebody else is called. */
function entryOf({ message, state }: NewMessage, saved: Saved | undefined, goesOn: boolean): Entry {
  if (saved?.state === 'dropped') return { messageId: saved.messageId ?? message.id };
  const { key, id: messageId } = message;
  const isHeld = goesOn && saved?.state === 'claimed' && message.settings.run?.callType === 'step';
  return isHeld && state.kind === 'claimed'
    ? { messageId, held: { key, claimToken: state.claimToken } }
    : { messageId };
}

/** Whatever run the element names: the token is for this one. */
function invocationBy(run: Run, command: PublishCommand): PublishCommand {
  const { invocation } = command;
  if (!invocation) return command;
  return { ...command, invocation: { ...invocation, runId: run.id, createdAtMs: run.createdAtMs } };
}
