/** Makes attempts: sends claimed messages that have slots, and saves the outcomes. */
import { type Call, Calls } from '../calls/calls.ts';
import type { FailedMessage } from '../calls/commands.ts';
import type { IdleCalls } from '../calls/idle-calls.ts';
import type { MessageOutcome } from '../calls/message-outcomes.ts';
import { backlogKeyOf } from '../lanes/backlog-key.ts';
import type { InFlight } from '../lanes/in-flight.ts';
import { Slices } from '../loops/slices.ts';
import { decide, decideEnd, type SettleDecision } from '../messages/decide.ts';
import type { Settler } from '../messages/settler.ts';
import type { Claimed, Message, Millis, Outcome, ProjectId } from '../model.ts';
import { spanOfAttempt, traceWithin } from '../spans.ts';
import type { Handoff } from '../stores.ts';
import type { ActiveClaims } from './active-claims.ts';
import type { ClaimLoop } from './claim-loop.ts';
import type { DeliveryContext } from './context.ts';

/** The maximum body bytes of the next message of a lane if this message takes over the slot of a smaller one. */
const SUCCESSOR_BYTES_MAX = 16 * 1024;
/**
 * The time in one turn of the event loop for sending the messages of a claim. Just after a server has started, each
 * message opens a connection with code that is not compiled yet: sending 64 messages would block all other work for 150
 * ms.
 */
const SEND_SLICE_MS = 1;

/** The parts of the dispatcher that an attempt uses. */
interface AttemptParts {
  inFlight: InFlight;
  activeClaims: ActiveClaims;
  claims: ClaimLoop;
  settler: Settler;
  idleCalls: IdleCalls;
  interrupter: AttemptInterrupter;
}

export class Attempts {
  /** The calls in flight. */
  readonly calls = new Calls();
  readonly #context: DeliveryContext;
  readonly #parts: AttemptParts;

  constructor(context: DeliveryContext, worker: AttemptParts) {
    this.#context = context;
    this.#parts = worker;
  }

  /**
   * Takes the slots that were reserved for a claim, and makes the attempts of the claimed messages, a few in each turn of
   * the event loop. Resolves when all requests are sent; returns no promise if the first turn has sent all of them.
   */
  startAll(claimed: readonly Claimed[], requestedAtMs: Millis): Promise<void> | undefined {
    const { clock, endOfTurn } = this.#context;
    const { activeClaims, claims, interrupter } = this.#parts;
    const entered = claimed.map((each) => {
      activeClaims.takeSlot(each.claimToken, backlogKeyOf(each.message), bytesOf(each), requestedAtMs);
      return { claimed: each, group: interrupter.enter(each.message.projectId) };
    });
    const slices = new Slices(clock, endOfTurn, SEND_SLICE_MS);
    const sent = slices.map(entered, (each) => void this.#attempt(each.claimed, each.group));
    if (!(sent instanceof Promise)) return undefined;
    claims.pace.noteSending();
    return sent.then(() => claims.pace.noteSent());
  }

  /**
   * Makes the attempt of a claimed message that has a slot. The delivered body may be larger than the slot allows,
   * because only the store knew the size of the journal. If the body does not fit, the message is released, to be claimed
   * later (P10).
   */
  start(claimed: Claimed): void {
    const fits = this.#parts.activeClaims.resize(claimed.claimToken, bytesOf(claimed));
    void (fits ? this.#attempt(claimed) : this.#release(claimed));
  }

  /**
   * Saves the failure of a message that a call keeps (`isInCall`) and that keeps its slot. Returns the due time of the
   * next attempt, if there is one.
   */
  async fail(claimed: Claimed, outcome: FailedMessage['outcome']): Promise<Millis | undefined> {
    const { clock } = this.#context;
    const decision = decide(claimed, outcome, clock.nowMs(), clock.leadMs);
    if (decision.kind === 'release') return undefined;
    if (mayShowBody(claimed, decision)) await this.#readBody(claimed);
    const settled = await this.#parts.settler.save(claimed, decision, undefined);
    const { next } = decision.settlement.change;
    const isRetried = settled?.kind === 'saved' && !settled.isCancelled && next.kind === 'waiting';
    return isRetried ? next.dueAtMs : undefined;
  }

  /**
   * Returns the journal entries for a call that continues with a message, as `entriesOf` does. Returns `'stopped'` if the
   * shutdown timeout passed first.
   */
  async entriesFor(claimed: Claimed, afterPosition: number): Promise<Uint8Array | undefined | 'stopped'> {
    const readEntries = async () => ({ entries: await this.#context.bodies.entriesOf(claimed, afterPosition) });
    const read = await this.#parts.settler.retryUntilSaved(claimed.message, readEntries);
    return read ? read.entries : 'stopped';
  }

  /**
   * Passes the message to an idle call of its run if there is one. Otherwise sends the message, which may start a call
   * that continues with later messages.
   */
  async #attempt(claimed: Claimed, group = this.#parts.interrupter.enter(claimed.message.projectId)): Promise<void> {
    const { clock } = this.#context;
    const { idleCalls, interrupter, activeClaims } = this.#parts;
    const idle = idleCalls.find(claimed);
    if (idle) {
      interrupter.leave(group);
      return idle.handOver(claimed);
    }
    const call = this.calls.start(claimed, clock.elapsedMs);
    const outcome = await this.#deliver(claimed, call, group.abort.signal);
    interrupter.leave(group);
    if (call) {
      const callEnds = await call.end(outcome, clock.elapsedMs);
      await Promise.all(callEnds.map((end) => this.#settleOrRelease(end, call)));
      if (call.idleSlotClaim) activeClaims.giveBack(call.idleSlotClaim.claimToken);
    } else {
      await this.#settleOrRelease({ claimed, outcome });
    }
    if (outcome.kind === 'responded') outcome.release?.();
  }

  #settleOrRelease({ claimed, outcome, returned }: MessageOutcome, call?: Call): Promise<void> {
    const { clock } = this.#context;
    const nowMs = clock.nowMs();
    const decision =
      returned && outcome.kind === 'responded'
        ? decideEnd(claimed, outcome, returned, nowMs, call?.run)
        : decide(claimed, outcome, nowMs, clock.leadMs);
    return decision.kind === 'release' ? this.#release(claimed) : this.#settle(claimed, decision);
  }

  /** Reads the journal that a step of a run delivers. Returns false if the shutdown timeout passed first. */
  async #readBody(claimed: Claimed): Promise<boolean> {
    if (!claimed.journal) return true;
    const read = await this.#parts.settler.retryUntilSaved(claimed.message, async () => ({
      body: await this.#context.bodies.bodyOf(claimed),
    }));
    if (read?.body) claimed.deliveredBody = read.body;
    return read !== undefined;
  }

  /** Sends the message, unless the claim is so old that another worker may have claimed the message since. */
  async #deliver(claimed: Claimed, call: Call | undefined, end: AbortSignal): Promise<Outcome> {
    const { clock, delivery, fence, reports, spans } = this.#context;
    const { inFlight, claims, activeClaims } = this.#parts;
    const backlog = backlogKeyOf(claimed.message);
    if (claimed.journal && !(await this.#readBody(claimed))) return { kind: 'interrupted' };
    const active = activeClaims.find(claimed.claimToken);
    const requestedAtMs = active?.requestedAtMs ?? clock.elapsedMs;
    const mayStart = !end.aborted && !active?.isCancelled && fence.mayStart(claimed.message.projectId, requestedAtMs);
    if (!mayStart) return { kind: 'interrupted' };
    const sentAtMs = clock.elapsedMs;
    const sent = inFlight.noteSent(backlog, sentAtMs);
    claims.wakeWhenSilent();
    if (spans) {
      const trace = traceWithin(spanOfAttempt(claimed), claimed.message.settings.trace);
      if (trace) claimed.trace = trace;
    }
    const outcome = await delivery.attempt(claimed, end, (attempt) => {
      if (active) active.attempt = attempt;
      call?.setAttempt(attempt);
    });
    call?.endIdleCall();
    const endedAtMs = clock.elapsedMs;
    claimed.durationMs = endedAtMs - sentAtMs;
    reports.attempted(claimed, outcome, clock.nowMs());
    inFlight.noteOutcome(sent);
    if (outcome.kind === 'responded') inFlight.noteResponse(backlog, endedAtMs, outcome.status);
    else if (outcome.kind === 'unreachable') {
      const isNowHeldBack = inFlight.noteNoResponse(backlog, outcome.reason === 'timeout');
      if (isNowHeldBack) reports.heldBack(claimed.message.origin);
    }
    return outcome;
  }

  /** Saves the decision with its follow-up messages, dispatches the follow-up messages, and frees the slot. */
  async #settle(claimed: Claimed, decision: SettleDecision): Promise<void> {
    const { inFlight, activeClaims, claims, settler } = this.#parts;
    const { message, claimToken } = claimed;
    if (mayShowBody(claimed, decision)) await this.#readBody(claimed);
    claims.pace.noteSettling();
    const handoff = isInLane(message)
      ? await settler.retryUntilSaved(message, () => this.#handoffOf(claimed))
      : undefined;
    const settled = await settler.save(claimed, decision, handoff);
    claims.pace.noteSettled();
    if (handoff) inFlight.returnBytes(handoff.bytesMax - bytesOf(claimed));
    const next = settled?.kind === 'saved' ? settled.next : undefined;
    if (next) {
      activeClaims.takeSlot(next.claimToken, backlogKeyOf(next.message), bytesOf(next));
      void this.#attempt(next);
    } else if (handoff) activeClaims.giveBack(handoff.claimToken);
    activeClaims.giveBack(claimToken);
  }

  /**
   * Offers the slot of the message to the next message of its lane, which saves a claim. The slot is not offered while
   * other messages wait for a slot of the origin or of the worker, because a lane with many messages would starve these
   * messages. The slot is also not offered while the origin or the project exceeds a limit and so must lose the slot
   * (P9).
   */
  async #handoffOf(claimed: Claimed): Promise<Handoff | undefined> {
    const { numbers, worker } = this.#context;
    const { inFlight, activeClaims, claims } = this.#parts;
    const backlog = backlogKeyOf(claimed.message);
    const bytes = bytesOf(claimed);
    const mustNotHandOff = claims.backlogs.has(backlog) || !inFlight.fits(bytes);
    if (mustNotHandOff || !claims.isOpen || !inFlight.mayHandOff(backlog, bytes)) return undefined;
    const claimToken = await numbers.take(1);
    activeClaims.expect(claimToken, backlog);
    return { worker, claimToken, bytesMax: bytes + inFlight.reserveBytes(SUCCESSOR_BYTES_MAX - bytes) };
  }

  /** Gives the claim back uncounted, and frees the slot of the claim. */
  async #release(claimed: Claimed): Promise<void> {
    await this.#parts.settler.release(claimed);
    this.#parts.activeClaims.giveBack(claimed.claimToken);
  }
}

/**
 * Whether the failure callback of a run may show the body of a message that was not delivered, because a call continued
 * with the message (`isInCall`).
 */
function mayShowBody({ isInCall }: Claimed, { failsRun }: SettleDecision): boolean {
  return failsRun !== undefined && isInCall === true;
}

function isInLane({ settings }: Message): boolean {
  return settings.queueName !== undefined || settings.flowControl !== undefined;
}

/** Approximate memory that a message takes during its attempt, in bytes. */
export function bytesOf({ message, journal, isInCall }: Claimed): number {
  return isInCall || !journal ? message.body.length : journal.bytes;
}

/** Attempts of one project that are interrupted together. */
export interface AttemptGroup {
  readonly projectId: ProjectId;
  readonly abort: AbortController;
  count: number;
}

/**
 * Interrupts attempts before their endpoints respond: at the shutdown timeout, or when other workers may own their
 * messages.
 */
export class AttemptInterrupter {
  readonly #shutdownTimeout = new AbortController();
  /** The group that a project's next attempt joins, until the group's last attempt ends or the group is interrupted. */
  readonly #byProject = new Map<ProjectId, AttemptGroup>();

  /** Aborts when the shutdown timeout has passed. */
  get shutdownTimeout(): AbortSignal {
    return this.#shutdownTimeout.signal;
  }

  /** Adds an attempt. Call `leave` with the group when the attempt has ended. */
  enter(projectId: ProjectId): AttemptGroup {
    let group = this.#byProject.get(projectId);
    if (group === undefined) {
      group = {
        projectId,
        abort: this.#shutdownTimeout.signal.aborted ? this.#shutdownTimeout : new AbortController(),
        count: 0,
      };
      this.#byProject.set(projectId, group);
    }
    group.count += 1;
    return group;
  }

  leave(group: AttemptGroup): void {
    group.count -= 1;
    if (group.count === 0 && this.#byProject.get(group.projectId) === group) this.#byProject.delete(group.projectId);
  }

  /** Interrupts the attempts in flight of all projects, or of the given project. Later attempts are not affected. */
  interrupt(projectId?: ProjectId): void {
    for (const each of projectId === undefined ? [...this.#byProject.keys()] : [projectId]) {
      const group = this.#byProject.get(each);
      this.#byProject.delete(each);
      group?.abort.abort();
    }
  }

  /** Interrupts the attempts in flight and all later attempts, because the shutdown timeout has passed. */
  noteShutdownTimeout(): void {
    this.#shutdownTimeout.abort();
    this.interrupt();
  }
}
