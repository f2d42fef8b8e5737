/**
 * Delivers messages on a worker: its slots for new messages and calls, its claims (`ClaimLoop`), its attempts (`Attempts`), and the
 * order in which all of these end.
 */
import type { RunKey } from '../../workflow/model.ts';
import type { LaggingProjects } from '../admission/lagging-projects.ts';
import type { Call } from '../calls/calls.ts';
import { IdleCalls } from '../calls/idle-calls.ts';
import type { CallSlots } from '../calls/places.ts';
import { type BacklogKey, backlogKeyOf } from '../lanes/backlog-key.ts';
import { InFlight } from '../lanes/in-flight.ts';
import { Intake } from '../messages/intake.ts';
import { Settler } from '../messages/settler.ts';
import type { Claimed, ClaimToken, Millis, ProjectId, WorkerId } from '../model.ts';
import { ActiveClaims } from './active-claims.ts';
import { AttemptEnds, Attempts } from './attempts.ts';
import { ClaimLoop } from './claim-loop.ts';
import type { DeliveryContext } from './context.ts';

export class Dispatcher implements CallSlots {
  /** For all new messages that take slots of this dispatcher. */
  readonly intake: Intake;
  readonly inFlight: InFlight;
  readonly activeClaims: ActiveClaims;
  readonly attempts: Attempts;
  readonly #context: DeliveryContext;
  readonly #idleCalls: IdleCalls;
  readonly #claims: ClaimLoop;
  readonly #ends = new AttemptEnds();
  #onIdle: (() => void)[] = [];

  constructor(context: DeliveryContext) {
    this.#context = context;
    this.intake = new Intake(context, this);
    const inFlight = new InFlight(context.settings, (backlog) => this.#claims.backlogs.reclassify(backlog));
    const activeClaims = new ActiveClaims(inFlight, context.clock, () => this.#slotBecameFree());
    const idleCalls = new IdleCalls(context.clock, inFlight);
    const settler = new Settler(context, this, this.#ends.limit);
    const claims = new ClaimLoop(context, inFlight, idleCalls, {
      startAttempts: (claimed, requestedAtMs) => this.attempts.startAll(claimed, requestedAtMs),
      onStopped: () => this.#notifyIfIdle(),
    });
    this.attempts = new Attempts(context, { inFlight, activeClaims, claims, settler, idleCalls, ends: this.#ends });
    this.inFlight = inFlight;
    this.activeClaims = activeClaims;
    this.#idleCalls = idleCalls;
    this.#claims = claims;
  }

  get worker(): WorkerId {
    return this.#context.worker;
  }

  /** The projects with a larger backlog than this worker keeps up with. */
  get backlog(): LaggingProjects {
    return this.#claims.laggingProjects;
  }

  /**
   * Reserves a slot for a message that is about to be accepted and is due at once. `'reserved'`: now call `start` or
   * `giveBack`. `'wait'`: the worker is full, the origin or project has its share, or other messages wait in the backlog. `'none'`:
   * this worker delivers nothing now, or never again; in the due index any worker can claim the message.
   */
  tryReserve(backlog: BacklogKey, bytes: number, claimToken: ClaimToken): 'reserved' | 'wait' | 'none' {
    if (!this.#claims.isOpen) return 'none';
    this.inFlight.findSilent(this.#context.clock.elapsedMs);
    if (this.#claims.backlogs.has(backlog)) return 'wait';
    return this.activeClaims.tryTakeSlot(claimToken, backlog, bytes) ? 'reserved' : 'wait';
  }

  giveBack(claimToken: ClaimToken): void {
    this.activeClaims.giveBack(claimToken);
  }

  start(claimed: Claimed): void {
    this.attempts.start(claimed);
  }

  tryPass(done: Claimed, bytes: number, claimToken: ClaimToken): boolean {
    return this.#claims.isOpen && this.activeClaims.tryPassSlot(done.claimToken, claimToken, bytes);
  }

  tryRest({ message, claimToken }: Claimed): boolean {
    return this.#claims.isOpen && this.activeClaims.tryTakeSlot(claimToken, backlogKeyOf(message), 0);
  }

  /**
   * Keeps a call that has a slot and holds nothing open for the next message of its run. Returns that message, at the latest after
   * `ms`; earlier when other messages wait for the slot (P9), when the run or the request ends, or `hangUp` aborts.
   */
  async linger(call: Call, ms: Millis, hangUp: AbortSignal | undefined): Promise<Claimed | undefined> {
    if (!this.#claims.isOpen || call.isEnding || hangUp?.aborted) return undefined;
    const idle = this.#idleCalls.begin(call.first.message, ms, hangUp);
    this.#claims.endIdleCalls();
    return call.stay(idle);
  }

  noteActivity(backlog: BacklogKey): void {
    this.inFlight.noteActivity(backlog, this.#context.clock.elapsedMs);
  }

  /** A run was ended by this worker. `isMoreLeft`: as in `EndedAs`. */
  noteRunEnd(runKey: RunKey, isMoreLeft = false): void {
    this.#context.bodies.forget(runKey);
    this.#idleCalls.endOf(runKey);
    if (isMoreLeft) this.#context.left.noteNext(0);
  }

  /** Whether this worker works on the claim, or waits for an answer that may bring it. */
  holds(claimToken: ClaimToken): boolean {
    return this.activeClaims.find(claimToken) !== undefined || this.#claims.mayReturn(claimToken);
  }

  /** How many attempts of the project are under way. */
  countOf(projectId: ProjectId): number {
    return this.inFlight.countOfProject(projectId);
  }

  /** Ends the attempts in flight, uncounted: other workers may own their messages by now. Absent project: of all. */
  interrupt(projectId?: ProjectId): void {
    this.#ends.interrupt(projectId);
  }

  /**
   * Ends the attempts of cancelled messages, which gives up their slots and lanes now. Claims of other workers are ignored, and so
   * is an attempt that has ended: its outcome counts.
   */
  endCancelled(claimTokens: readonly ClaimToken[]): void {
    for (const token of claimTokens) {
      const active = this.activeClaims.find(token);
      if (!active) continue;
      active.isCancelled = true;
      active.attempt?.interrupt();
    }
  }

  /** A message was saved that is due at `dueAtMs`. */
  noteDue(dueAtMs: Millis): void {
    this.#claims.noteDue(dueAtMs);
  }

  /** Lines with a backlog when the worker starts. */
  addBacklogs(backlogs: readonly BacklogKey[]): void {
    for (const backlog of backlogs) this.#claims.backlogs.add(backlog);
  }

  /** A message was saved into `backlog`. */
  noteWaitingBacklog(backlog: BacklogKey): void {
    this.#claims.noteWaitingBacklog(backlog);
  }

  /** Claims if there is something to claim and room for it. */
  wake(): void {
    this.#claims.wake();
  }

  /** Stops claiming; resolves when no attempt is left. After `limitMs` those still running are given back. */
  async drain(limitMs: Millis): Promise<void> {
    this.#claims.stop();
    this.#idleCalls.endAll();
    const limit = this.#context.clock.startTimer(limitMs, () => this.#ends.passLimit());
    while (this.inFlight.count > 0 || !this.#claims.isIdle) {
      await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    }
    limit.cancel();
  }

  #slotBecameFree(): void {
    if (this.#claims.isStopped) this.#notifyIfIdle();
    else this.wake();
  }

  #notifyIfIdle(): void {
    if (this.inFlight.count > 0 || !this.#claims.isIdle) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}
