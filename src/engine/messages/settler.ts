/** Saves the outcome of an attempt, and retries until the store has saved the outcome. */
import { takesCheckpoints } from '../../protocol/workflow/checkpoints.ts';
import type { RunKey } from '../../workflow/model.ts';
import type { DeliveryContext } from '../dispatch/context.ts';
import type { Change, Claimed, Message, Millis, NewMessage, Settlement } from '../model.ts';
import { failRun } from '../runs/endings/failures.ts';
import { returnRun } from '../runs/endings/returns.ts';
import { StoreUnavailable } from '../store-errors.ts';
import type { Handoff, Settled } from '../stores.ts';
import type { Saved } from './accepted.ts';
import type { SettleDecision } from './decide.ts';
import type { Intake } from './intake.ts';

/** The pause after the store has failed: 100 ms, doubled up to 5 s. */
const STORE_RETRY_MS = { first: 100, max: 5_000 };

/** The parts of the dispatcher that settling uses. */
interface Dispatcher {
  /** Saves the follow-up messages. */
  intake: Intake;
  /** Notes that a message will be attempted again. */
  noteDue(dueAtMs: Millis): void;
  /** Notes that a message has ended its run. */
  noteRunEnd(runKey: RunKey, isMoreLeft?: boolean): void;
}

export class Settler {
  readonly #context: DeliveryContext;
  readonly #dispatcher: Dispatcher;
  readonly #limit: AbortSignal;

  /**
   * `limit` aborts when the shutdown timeout has passed. Messages that are not settled before `limit` aborts stay
   * claimed.
   */
  constructor(context: DeliveryContext, dispatcher: Dispatcher, limit: AbortSignal) {
    this.#context = context;
    this.#dispatcher = dispatcher;
    this.#limit = limit;
  }

  /**
   * Saves the decision with its follow-up messages, and dispatches these messages. Returns undefined if the shutdown
   * timeout passed before the decision was saved.
   */
  async save(claimed: Claimed, decided: SettleDecision, handoff: Handoff | undefined): Promise<Settled | undefined> {
    const { store, clock, reports, operatorEvents } = this.#context;
    const { intake } = this.#dispatcher;
    const { message } = claimed;
    while (true) {
      // The end of a run is decided again in each round, from the current state of the run.
      const decision = endsRun(decided)
        ? await this.retryUntilSaved(message, () => endRun(store, intake, claimed, decided))
        : decided;
      if (!decision) return undefined;
      const { settlement, follows, succeeds } = decision;
      const kind = operatorEvents?.kindOf(message, settlement.change);
      if (kind) settlement.change.operatorEventKind = kind;
      const save = (newMessages: NewMessage[]) => {
        const whole = newMessages.length === 0 ? settlement : withFollows(settlement, newMessages);
        return this.retryUntilSaved(message, () =>
          store.messages.settle({ settlement: whole, nowMs: clock.nowMs(), handoff }),
        );
      };
      const saveAll = async () => {
        const drafts = await intake.draftsOf(follows);
        return intake.save(drafts, save, followsOf, { mayBeAlone: claimed.isAlone === true });
      };
      const settled = await (follows.length === 0 ? save([]) : this.retryUntilSaved(message, saveAll));
      if (settled?.kind === 'runChanged') continue;
      if (settled?.kind === 'stepTaken') {
        // The run continues with the message that had the first result.
        delete decided.returns;
        continue;
      }
      if (settled?.kind === 'stale' && !mayBeDone(claimed, settlement)) reports.claimLost();
      const { next, ending, lastStep } = settlement.change;
      if (settled?.kind === 'saved' && ending) this.#dispatcher.noteRunEnd(ending.runKey, settled.isMoreLeft);
      if (settled?.kind === 'saved' && succeeds) reports.runEnded(succeeds, 'RUN_SUCCESS', clock.nowMs());
      if (settled?.kind === 'saved') reports.settled(claimed, changeOf(settlement, settled), clock.nowMs());
      if (settled?.kind === 'saved' && lastStep) this.#reportLastStep(lastStep, claimed);
      if (settled?.kind === 'saved' && next.kind === 'waiting') this.#dispatcher.noteDue(next.dueAtMs);
      return settled;
    }
  }

  #reportLastStep(lastStep: NewMessage, { claimToken, claimedAtMs }: Claimed): void {
    const { reports, clock } = this.#context;
    const { message, events = [] } = lastStep;
    const done = events.filter(({ state }) => state === 'DELIVERED');
    const nowMs = clock.nowMs();
    reports.accepted(lastStep, nowMs);
    reports.settled(
      { message, retried: 0, claimToken, claimedAtMs },
      { next: { kind: 'finished' }, events: done },
      nowMs,
    );
  }

  /** Gives the claim back uncounted. */
  async release({ message, claimToken }: Claimed): Promise<void> {
    const { store, clock } = this.#context;
    const { key, projectId } = message;
    await this.retryUntilSaved(message, () =>
      store.messages.release({ claims: [{ key, projectId, claimToken }], nowMs: clock.nowMs() }),
    );
  }

  /**
   * Retries `save` until it succeeds: a known outcome must not be lost because the disk was full for a while. If the
   * shutdown timeout passes first, the message stays claimed and is sent again after the next start.
   */
  async retryUntilSaved<T>(message: Message, save: () => Promise<T>): Promise<T | undefined> {
    for (let pauseMs = STORE_RETRY_MS.first; ; pauseMs = Math.min(pauseMs * 2, STORE_RETRY_MS.max)) {
      try {
        return await save();
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        this.#context.log.warn('settle_failed', { messageId: message.id, reason: error.message });
        if (this.#limit.aborted) return undefined;
        await this.#pauseUnlessAborted(pauseMs);
      }
    }
  }

  /** Waits for `pauseMs`, or until the shutdown timeout passes. */
  async #pauseUnlessAborted(pauseMs: Millis): Promise<void> {
    let resume = () => {};
    const pause = new Promise<void>((resolve) => {
      resume = resolve;
    });
    const timer = this.#context.clock.startTimer(pauseMs, resume, 'outside');
    this.#limit.addEventListener('abort', resume);
    await pause;
    this.#limit.removeEventListener('abort', resume);
    timer.cancel();
  }
}

/** Whether the message ends its run. */
function endsRun({ failsRun, returns }: SettleDecision): boolean {
  return failsRun !== undefined || returns !== undefined;
}

/** Adds the end of the run to the decision, if the message ends its run. Throws `StoreUnavailable`. */
async function endRun(
  store: DeliveryContext['store'],
  intake: Intake,
  claimed: Claimed,
  decided: SettleDecision,
): Promise<SettleDecision> {
  const { failsRun, returns } = decided;
  if (failsRun) return failRun(store, claimed, { ...decided, failsRun });
  return returns ? returnRun(store, intake, claimed, { ...decided, returns }) : decided;
}

/** Whether another worker may have saved a checkpoint that already counts the message as delivered. */
function mayBeDone({ message }: Claimed, { change }: Settlement): boolean {
  const { run } = message.settings;
  return run !== undefined && takesCheckpoints(run) && change.events[0]?.state === 'DELIVERED';
}

/** Adds the follow-up messages. The end of a run refers to the failure callback of the run, which has a key by now. */
function withFollows(settlement: Settlement, follows: NewMessage[]): Settlement {
  const change: Change = { ...settlement.change, follows };
  const failureCallback = follows.find(({ message }) => message.settings.run?.callType === 'failureCall');
  if (change.ending && failureCallback)
    change.ending = { ...change.ending, failureCallbackKey: failureCallback.message.key };
  return { ...settlement, change };
}

function followsOf(settled: Settled | undefined): readonly Saved[] {
  return settled?.kind === 'saved' ? (settled.follows ?? []) : [];
}

/** The change that was saved. */
function changeOf({ change, changeIfCancelRequested }: Settlement, { isCancelled }: { isCancelled?: true }): Change {
  return isCancelled ? (changeIfCancelRequested ?? change) : change;
}
