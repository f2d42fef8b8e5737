/**
 * With what does a call go on whose checkpoint says that it has nothing under way (contract K 3.9 to 3.12)? What has failed is
 * saved first. Then the call stays, without anything but its slot, until something of its run is claimed here.
 */
import type { Attempts } from '../messages/attempts.ts';
import type { Claimed, Millis } from '../model.ts';
import type { Clock } from '../ports.ts';
import type { ActiveRuns } from '../runs/active-runs.ts';
import { StoreUnavailable } from '../store-errors.ts';
import type { Around, Call } from './calls.ts';
import type { CheckpointCommand, Failed, Handover } from './commands.ts';
import { type CallSlots, heldOf } from './places.ts';

/** The dispatcher, as far as calls need it that stay. */
export interface StayingSlots extends CallSlots {
  linger(call: Call, ms: Millis, hangUp: AbortSignal | undefined): Promise<Claimed | undefined>;
  readonly attempts: Pick<Attempts, 'fail' | 'entriesFor'>;
}

interface GoingOnDeps {
  dispatcher: StayingSlots;
  active: ActiveRuns;
  clock: Clock;
}

export class GoingOn {
  readonly #deps: GoingOnDeps;

  constructor(deps: GoingOnDeps) {
    this.#deps = deps;
  }

  /** Once all that the checkpoint keeps is saved. `undefined`: nothing more comes to the call. */
  async after(
    command: CheckpointCommand,
    around: Around,
  ): Promise<{ comes: Promise<Handover | undefined> } | undefined> {
    const { dispatcher, clock } = this.#deps;
    const { lingerMs, hangUp, failed = [] } = command;
    const { call, arrivals } = around;
    const dueAtMs = await this.#saveFailed(failed, around);
    if (lingerMs === undefined) return undefined;
    const [first, ...others] = arrivals;
    for (const each of others) dispatcher.start(each);
    if (first) return { comes: this.#handOver(first, around) };
    const isInVain = failed.length > 0 && dueAtMs > clock.nowMs() + lingerMs;
    if (isInVain || (await this.#isOver(call)) || !call.isEmpty || !this.#hasSlot(call)) return undefined;
    const staying = dispatcher.linger(call, lingerMs, hangUp);
    return { comes: staying.then((next) => next && this.#handOver(next, around)) };
  }

  /** Answers when the first of them is attempted again; `Infinity`: never. */
  async #saveFailed(failed: readonly Failed[], { call, failed: held }: Around): Promise<Millis> {
    const { dispatcher, clock } = this.#deps;
    let firstAtMs = Number.POSITIVE_INFINITY;
    for (const [index, { claimed, sinceMs }] of held.entries()) {
      const outcome = failed[index]?.outcome;
      if (!outcome) continue;
      claimed.durationMs = clock.elapsedMs - sinceMs;
      const dueAtMs = await dispatcher.attempts.fail(claimed, outcome);
      if (dueAtMs !== undefined) firstAtMs = Math.min(firstAtMs, dueAtMs);
      if (call.isEmpty && !call.rest) {
        dispatcher.permits.rest(claimed.claimToken);
        call.rest = claimed;
      } else {
        dispatcher.giveBack(claimed.claimToken);
      }
    }
    return firstAtMs;
  }

  /**
   * Whether the run has ended here while what the checkpoint says was saved: nothing would end the linger. So it is taken where
   * nobody can say; that the checkpoint is saved stays true.
   */
  async #isOver({ run }: Call): Promise<boolean> {
    if (run === undefined) return false;
    try {
      return (await this.#deps.active.find(run.projectId, run.id)).run?.key !== run.key;
    } catch (error) {
      if (error instanceof StoreUnavailable) return true;
      throw error;
    }
  }

  #hasSlot(call: Call): boolean {
    if (!call.rest && this.#deps.dispatcher.tryRest(call.first)) call.rest = call.first;
    return call.rest !== undefined;
  }

  async #handOver(claimed: Claimed, { call, hold }: Around): Promise<Handover | undefined> {
    const { dispatcher, clock } = this.#deps;
    hold({ claimed: heldOf(claimed, dispatcher), sinceMs: clock.elapsedMs });
    if (call.rest) dispatcher.giveBack(call.rest.claimToken);
    call.rest = undefined;
    const brings = await this.#broughtBy(claimed, call);
    if (!brings) return undefined;
    const { message, retried, claimToken } = claimed;
    return { messageId: message.id, key: message.key, claimToken, retried, brings };
  }

  async #broughtBy(claimed: Claimed, call: Call): Promise<Handover['brings'] | undefined> {
    const { message, journal } = claimed;
    if (message.settings.run?.callType === 'fromCallback') {
      const { header, body } = message;
      return journal?.bytes === 0 ? { kind: 'nothing', header } : { kind: 'callResult', header, body };
    }
    const after = call.tell(journal?.position ?? -1);
    const entries = await this.#deps.dispatcher.attempts.entriesFor(claimed, after);
    if (entries === 'stopped') return undefined;
    return entries ? { kind: 'journal', entries } : { kind: 'nothing' };
  }
}
