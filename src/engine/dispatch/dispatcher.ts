/**
 * Delivers messages on a worker. It combines the slots for new messages and calls, the claims (`ClaimLoop`) and the
 * attempts (`Attempts`), and defines the order in which these parts end.
 */
import type { RunKey } from '../../workflow/model.ts';
import type { LaggingProjects } from '../admission/lagging-projects.ts';
import type { Call } from '../calls/calls.ts';
import type { CallSlots } from '../calls/checkpoint-slots.ts';
import { IdleCalls } from '../calls/idle-calls.ts';
import { type BacklogKey, backlogKeyOf } from '../lanes/backlog-key.ts';
import { InFlight } from '../lanes/in-flight.ts';
import { Intake } from '../messages/intake.ts';
import { Settler } from '../messages/settler.ts';
import type { Claimed, ClaimToken, Millis, ProjectId, WorkerId } from '../model.ts';
import { ActiveClaims } from './active-claims.ts';
import { AttemptInterrupter, Attempts } from './attempts.ts';
import { ClaimLoop } from './claim-loop.ts';
import type { DeliveryContext } from './context.ts';

export class Dispatcher implements CallSlots {
  /** Saves the new messages that take slots of this dispatcher. */
  readonly intake: Intake;
  readonly inFlight: InFlight;
  readonly activeClaims: ActiveClaims;
  readonly attempts: Attempts;
  readonly #context: DeliveryContext;
  readonly #idleCalls: IdleCalls;
  readonly #claims: ClaimLoop;
  readonly #interrupter = new AttemptInterrupter();
  #onIdle: (() => void)[] = [];

  constructor(context: DeliveryContext) {
    this.#context = context;
    this.intake = new Intake(context, this);
    const inFlight = new InFlight(context.settings, (laggingProjects) =>
      this.#claims.backlogs.reclassify(laggingProjects),
    );
    const activeClaims = new ActiveClaims(inFlight, context.clock, () => this.#onFreeSlot());
    const idleCalls = new IdleCalls(context.clock, inFlight);
    const settler = new Settler(context, this, this.#interrupter.shutdownTimeout);
    const claims = new ClaimLoop(context, inFlight, idleCalls, {
      startAttempts: (claimed, requestedAtMs) => this.attempts.startAll(claimed, requestedAtMs),
      onStopped: () => this.#notifyIfIdle(),
    });
    this.attempts = new Attempts(context, {
      inFlight,
      activeClaims,
      claims,
      settler,
      idleCalls,
      interrupter: this.#interrupter,
    });
    this.inFlight = inFlight;
    this.activeClaims = activeClaims;
    this.#idleCalls = idleCalls;
    this.#claims = claims;
  }

  get worker(): WorkerId {
    return this.#context.worker;
  }

  /** The projects with more due messages than this worker can deliver at present. */
  get backlog(): LaggingProjects {
    return this.#claims.laggingProjects;
  }

  /**
   * Reserves a slot for a new message that is due at once. Returns `'reserved'` if the caller must now call `start` or
   * `giveBack`; `'wait'` if the worker is full, the origin or the project has used up its share, or other messages wait
   * in the backlog; `'none'` if this worker delivers nothing now, or never again: any worker can claim the message from
   * the due index.
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

  tryKeepIdle({ message, claimToken }: Claimed): boolean {
    return this.#claims.isOpen && this.activeClaims.tryTakeSlot(claimToken, backlogKeyOf(message), 0);
  }

  /**
   * Keeps a call open that has a slot and no message, until the next message of its run, and returns that message.
   * Returns at the latest after `ms`; earlier if other messages wait for the slot (P9), if the run or the request ends,
   * or if `hangUp` aborts.
   */
  async waitIdle(call: Call, ms: Millis, hangUp: AbortSignal | undefined): Promise<Claimed | undefined> {
    if (!this.#claims.isOpen || call.isEnding || hangUp?.aborted) return undefined;
    const idle = this.#idleCalls.start(call.first.message, ms, hangUp);
    this.#claims.endIdleCalls();
    return call.waitIdle(idle);
  }

  noteActivity(backlog: BacklogKey): void {
    this.inFlight.noteActivity(backlog, this.#context.clock.elapsedMs);
  }

  /** Notes that this worker has ended a run. `isMoreLeft`: as in `RunEndResult`. */
  noteRunEnd(runKey: RunKey, isMoreLeft = false): void {
    this.#context.bodies.forget(runKey);
    this.#idleCalls.endOf(runKey);
    if (isMoreLeft) this.#context.cancellations.noteNext(0);
  }

  /** Whether this worker works on the claim, or has a pending request that may return this claim. */
  hasClaim(claimToken: ClaimToken): boolean {
    return this.activeClaims.find(claimToken) !== undefined || this.#claims.mayReturn(claimToken);
  }

  /** How many attempts of the project are in flight. */
  countOf(projectId: ProjectId): number {
    return this.inFlight.countOfProject(projectId);
  }

  /**
   * Interrupts attempts in flight, uncounted: other workers may have claimed their messages. Without a project,
   * interrupts all attempts.
   */
  interrupt(projectId?: ProjectId): void {
    this.#interrupter.interrupt(projectId);
  }

  /**
   * Interrupts the attempts of cancelled messages, which frees their slots and lane permits at once. Ignores claims of
   * other workers. Also ignores attempts that have ended, because their outcomes count.
   */
  interruptCancelled(claimTokens: readonly ClaimToken[]): void {
    for (const token of claimTokens) {
      const active = this.activeClaims.find(token);
      if (!active) continue;
      active.isCancelled = true;
      active.attempt?.interrupt();
    }
  }

  /** Notes that a message was saved that is due at `dueAtMs`. */
  noteDue(dueAtMs: Millis): void {
    this.#claims.noteDue(dueAtMs);
  }

  /** Adds backlogs that have messages when the worker starts. */
  addBacklogs(backlogs: readonly BacklogKey[]): void {
    for (const backlog of backlogs) this.#claims.backlogs.add(backlog);
  }

  /** Notes that a message was saved into `backlog`. */
  noteWaitingBacklog(backlog: BacklogKey): void {
    this.#claims.noteWaitingBacklog(backlog);
  }

  /** Makes a claim if messages may be due and there is capacity for a message. */
  wake(): void {
    this.#claims.wake();
  }

  /**
   * Stops claiming, and resolves when no attempt is left. After `limitMs`, interrupts the remaining attempts and releases
   * their claims.
   */
  async drain(limitMs: Millis): Promise<void> {
    this.#claims.stop();
    this.#idleCalls.endAll();
    const limit = this.#context.clock.startTimer(limitMs, () => this.#interrupter.noteShutdownTimeout());
    while (this.inFlight.count > 0 || !this.#claims.isIdle) {
      await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    }
    limit.cancel();
  }

  #onFreeSlot(): void {
    if (this.#claims.isStopped) this.#notifyIfIdle();
    else this.wake();
  }

  #notifyIfIdle(): void {
    if (this.inFlight.count > 0 || !this.#claims.isIdle) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}
