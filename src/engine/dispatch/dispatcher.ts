/**
 * Delivers messages on a worker: its slots for new messages and calls, its claims (`ClaimLoop`), its attempts (`Attempts`), and the
 * order in which all of these end.
 */
import type { RunKey } from '../../workflow/model.ts';
import type { Backlog } from '../admission/backlog.ts';
import type { Call } from '../calls/calls.ts';
import { Lingers } from '../calls/lingers.ts';
import type { CallSlots } from '../calls/places.ts';
import { InFlight } from '../lanes/in-flight.ts';
import { lineTo, type OriginLine } from '../lanes/origin-line.ts';
import { Intake } from '../messages/intake.ts';
import { Settler } from '../messages/settler.ts';
import type { Claimed, ClaimToken, Millis, ProjectId, WorkerId } from '../model.ts';
import { AttemptEnds, Attempts } from './attempts.ts';
import { ClaimLoop } from './claim-loop.ts';
import type { DeliveryContext } from './context.ts';
import { Permits } from './permits.ts';

export class Dispatcher implements CallSlots {
  /** For all new messages that take slots of this dispatcher. */
  readonly intake: Intake;
  readonly inFlight: InFlight;
  readonly permits: Permits;
  readonly attempts: Attempts;
  readonly #context: DeliveryContext;
  readonly #lingers: Lingers;
  readonly #claims: ClaimLoop;
  readonly #ends = new AttemptEnds();
  #whenIdle: (() => void)[] = [];

  constructor(context: DeliveryContext) {
    this.#context = context;
    this.intake = new Intake(context, this);
    const inFlight = new InFlight(context.settings, (line) => this.#claims.lines.reclassify(line));
    const permits = new Permits(inFlight, context.clock, () => this.#slotBecameFree());
    const lingers = new Lingers(context.clock, inFlight);
    const settler = new Settler(context, this, this.#ends.limit);
    const claims = new ClaimLoop(context, inFlight, lingers, {
      begin: (claimed, askedAtMs) => this.attempts.begin(claimed, askedAtMs),
      onStopped: () => this.#tellIfIdle(),
    });
    this.attempts = new Attempts(context, { inFlight, permits, claims, settler, lingers, ends: this.#ends });
    this.inFlight = inFlight;
    this.permits = permits;
    this.#lingers = lingers;
    this.#claims = claims;
  }

  get worker(): WorkerId {
    return this.#context.worker;
  }

  /** The projects with a larger backlog than this worker keeps up with. */
  get backlog(): Backlog {
    return this.#claims.backlog;
  }

  /**
   * Reserves a slot for a message that is about to be accepted and is due at once. `'reserved'`: now call `start` or
   * `giveBack`. `'wait'`: the worker is full, the origin or project has its share, or other messages wait in the line. `'none'`:
   * this worker delivers nothing now, or never again; in the due index any worker can claim the message.
   */
  tryReserve(line: OriginLine, bytes: number, claimToken: ClaimToken): 'reserved' | 'wait' | 'none' {
    if (!this.#claims.isOpen) return 'none';
    this.inFlight.findSilent(this.#context.clock.elapsedMs);
    if (this.#claims.lines.has(line)) return 'wait';
    return this.permits.tryTake(claimToken, line, bytes) ? 'reserved' : 'wait';
  }

  giveBack(claimToken: ClaimToken): void {
    this.permits.giveBack(claimToken);
  }

  start(claimed: Claimed): void {
    this.attempts.start(claimed);
  }

  tryPass(done: Claimed, bytes: number, claimToken: ClaimToken): boolean {
    return this.#claims.isOpen && this.permits.tryPass(done.claimToken, claimToken, bytes);
  }

  tryRest({ message, claimToken }: Claimed): boolean {
    return this.#claims.isOpen && this.permits.tryTake(claimToken, lineTo(message), 0);
  }

  /**
   * Keeps a call that has a slot and holds nothing open for the next message of its run. Returns that message, at the latest after
   * `ms`; earlier when other messages wait for the slot (P9), when the run or the request ends, or `hangUp` aborts.
   */
  async linger(call: Call, ms: Millis, hangUp: AbortSignal | undefined): Promise<Claimed | undefined> {
    if (!this.#claims.isOpen || call.isEnding || hangUp?.aborted) return undefined;
    const linger = this.#lingers.begin(call.first.message, ms, hangUp);
    this.#claims.makeRoom();
    return call.stay(linger);
  }

  noteHeard(line: OriginLine): void {
    this.inFlight.noteHeard(line, this.#context.clock.elapsedMs);
  }

  /** A run was ended by this worker. `isMoreLeft`: as in `EndedAs`. */
  noteRunEnd(runKey: RunKey, isMoreLeft = false): void {
    this.#context.bodies.forget(runKey);
    this.#lingers.endOf(runKey);
    if (isMoreLeft) this.#context.left.noteNext(0);
  }

  /** Whether this worker works on the claim, or waits for an answer that may bring it. */
  holds(claimToken: ClaimToken): boolean {
    return this.permits.find(claimToken) !== undefined || this.#claims.mayBring(claimToken);
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
      const permit = this.permits.find(token);
      if (!permit) continue;
      permit.isCancelled = true;
      permit.attempt?.interrupt();
    }
  }

  /** A message was saved that is due at `dueAtMs`. */
  noteDue(dueAtMs: Millis): void {
    this.#claims.noteDue(dueAtMs);
  }

  /** Lines with a backlog when the worker starts. */
  addLines(lines: readonly OriginLine[]): void {
    for (const line of lines) this.#claims.lines.add(line);
  }

  /** A message was saved into `line`. */
  noteWaitingLine(line: OriginLine): void {
    this.#claims.noteWaitingLine(line);
  }

  /** Claims if there is something to claim and room for it. */
  wake(): void {
    this.#claims.wake();
  }

  /** Stops claiming; resolves when no attempt is left. After `limitMs` those still running are given back. */
  async drain(limitMs: Millis): Promise<void> {
    this.#claims.stop();
    this.#lingers.endAll();
    const limit = this.#context.clock.startTimer(limitMs, () => this.#ends.passLimit());
    while (this.inFlight.count > 0 || !this.#claims.isIdle) {
      await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
    }
    limit.cancel();
  }

  #slotBecameFree(): void {
    if (this.#claims.isStopped) this.#tellIfIdle();
    else this.wake();
  }

  #tellIfIdle(): void {
    if (this.inFlight.count > 0 || !this.#claims.isIdle) return;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }
}
