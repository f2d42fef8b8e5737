/**
 * Brings claimed messages and free slots together: makes the attempts, and has their outcomes settled. What is claimed, and
 * when, is up to `ClaimLoop`.
 */
import type { Store } from '../../store/store.ts';
import type { RunKey } from '../../workflow/model.ts';
import { type Call, Calls } from '../calls/calls.ts';
import type { Failed } from '../calls/commands.ts';
import type { CallEnd } from '../calls/ends.ts';
import { type Arrival, Lingers } from '../calls/lingers.ts';
import type { CallSlots } from '../calls/places.ts';
import type { DueLoop } from '../due-loop.ts';
import { type Held, InFlight } from '../lanes/in-flight.ts';
import { lineTo, type OriginLine } from '../lanes/origin-line.ts';
import type { Claimed, ClaimToken, Message, Millis, Outcome, ProjectId, WorkerId } from '../model.ts';
import type { OperatorEvents } from '../operator-events/events.ts';
import type { Delivery, Observer, Randomness, UnderWay } from '../ports.ts';
import type { Reports } from '../reports.ts';
import type { JournalBodies } from '../runs/journal-bodies.ts';
import type { EngineSettings } from '../settings.ts';
import { Slices } from '../slices.ts';
import { spanOfAttempt, traceWithin } from '../spans.ts';
import type { Handoff } from '../stores.ts';
import { AttemptEnds } from './attempt-ends.ts';
import type { Backlog } from './backlog.ts';
import { ClaimLoop, type ClaimLoopDeps } from './claim-loop.ts';
import { decide, decideEnd, type Settling } from './decide.ts';
import { Intake } from './intake.ts';
import { Settler } from './settler.ts';

/** Body bytes that a lane's next message may have when it takes over the slot of a smaller one. */
const SUCCESSOR_BYTES_MAX = 16 * 1024;
/**
 * How long what a claim has brought goes out in one turn of the event loop. At a server's start each message opens a connection, with
 * code that is not compiled yet: 64 of them would keep all else waiting for 150 ms.
 */
const SEND_SLICE_MS = 1;
/** A claim that this worker works on. */
interface OwnClaim {
  /** When it asked for the claim, as `elapsedMs` counts. */
  readonly askedAtMs: Millis;
  /** Its attempt, once the request is being sent. */
  attempt?: UnderWay;
  isCancelled?: boolean;
}

interface DispatcherDeps extends ClaimLoopDeps {
  store: {
    messages: Pick<Store['messages'], 'claim' | 'settle' | 'release' | 'waitingLines'>;
    runs: Pick<Store['runs'], 'findRun' | 'findRecords' | 'readJournal'>;
  };
  bodies: JournalBodies;
  /** Cancels what is left of runs. */
  left: Pick<DueLoop, 'noteNext'>;
  randomness: Randomness;
  delivery: Delivery;
  reports: Reports;
  operatorEvents?: Pick<OperatorEvents, 'kindOf'> | undefined;
  spans?: Observer | undefined;
  settings: EngineSettings;
  endOfTurn?: () => Promise<void>;
}

export class Dispatcher implements CallSlots {
  /** For all new messages that take slots of this dispatcher. */
  readonly intake: Intake;
  /** The calls of endpoints under way. */
  readonly calls = new Calls();
  readonly #lingers: Lingers;
  readonly #deps: DispatcherDeps;
  readonly #settler: Settler;
  readonly #inFlight: InFlight;
  readonly #claims: ClaimLoop;
  /**
   * Claims that this worker works on, or that are being saved. Others in its name are left over from a lost answer.
   */
  readonly #tokens = new Map<ClaimToken, OwnClaim>();
  readonly #ends = new AttemptEnds();

  #draining = false;
  #whenIdle: (() => void)[] = [];

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
    this.intake = new Intake({ ...deps, slots: this });
    this.#inFlight = new InFlight(deps.settings, (line) => this.#claims.lines.reclassify(line));
    this.#lingers = new Lingers(deps.clock, this.#inFlight);
    const noteDue = (dueAtMs: Millis) => this.noteDue(dueAtMs);
    const noteRunEnd: Dispatcher['noteRunEnd'] = (runKey, isMoreLeft) => this.noteRunEnd(runKey, isMoreLeft);
    this.#settler = new Settler({ ...deps, intake: this.intake, noteDue, noteRunEnd, limit: this.#ends.limit });
    this.#claims = new ClaimLoop({
      ...deps,
      inFlight: this.#inFlight,
      lingers: this.#lingers,
      begin: (claimed, askedAtMs) => this.#begin(claimed, askedAtMs),
      onStopped: () => this.#tellIfIdle(),
    });
  }

  /**
   * Reserves a slot for a message that is about to be accepted and is due at once. `'reserved'`: now call `start` or
   * `giveBack`. `'wait'`: the worker is full, the origin or project has its share, or others wait in the line. `'none'`:
   * this worker delivers nothing now, or never again; in the due index any worker can claim the message.
   */
  tryReserve(line: OriginLine, bytes: number, claimToken: ClaimToken): 'reserved' | 'wait' | 'none' {
    if (this.#draining || this.#deps.fence.isClosed) return 'none';
    this.#inFlight.findSilent(this.#deps.clock.elapsedMs);
    if (this.#claims.lines.has(line) || !this.#inFlight.hasSpace(bytes) || this.#inFlight.roomOfNew(line) === 0)
      return 'wait';
    this.#inFlight.enter(line, bytes);
    this.#tokens.set(claimToken, { askedAtMs: this.#deps.clock.elapsedMs });
    return 'reserved';
  }

  tryPass(done: Claimed, bytes: number, claimToken: ClaimToken): boolean {
    if (this.#draining || this.#deps.fence.isClosed) return false;
    const line = lineTo(done.message);
    this.#inFlight.leave(line, bytesOf(done));
    const isRoom = this.#inFlight.hasSpace(bytes) && this.#inFlight.roomOfNew(line) > 0;
    this.#inFlight.enter(line, isRoom ? bytes : bytesOf(done));
    if (isRoom) this.#tokens.set(claimToken, { askedAtMs: this.#deps.clock.elapsedMs });
    return isRoom;
  }

  takeBack(done: Claimed, bytes: number, claimToken: ClaimToken): void {
    const line = lineTo(done.message);
    this.#inFlight.leave(line, bytes);
    this.#inFlight.enter(line, bytesOf(done));
    this.#tokens.delete(claimToken);
  }

  forget({ claimToken }: Claimed): void {
    this.#tokens.delete(claimToken);
  }

  giveUp(done: Claimed): void {
    this.giveBack(lineTo(done.message), bytesOf(done), done.claimToken);
  }

  rest(done: Claimed): void {
    const line = lineTo(done.message);
    this.#inFlight.leave(line, bytesOf(done));
    this.#inFlight.enter(line, 0);
    this.#tokens.delete(done.claimToken);
  }

  endRest(done: Claimed): void {
    this.giveBack(lineTo(done.message), 0, done.claimToken);
  }

  keep(claimed: Claimed, reservedBytes: number): void {
    const line = lineTo(claimed.message);
    this.#inFlight.leave(line, reservedBytes);
    this.#inFlight.enter(line, bytesOf(claimed));
  }

  tryRest({ message }: Claimed): boolean {
    const line = lineTo(message);
    if (this.#draining || !this.#inFlight.hasSpace(0) || this.#inFlight.roomOfNew(line) === 0) return false;
    this.#inFlight.enter(line, 0);
    return true;
  }

  /**
   * Lets a call that has a slot and holds nothing stay for what comes of its run. Answers what has come, at `ms` at the
   * latest; earlier when others wait for the slot (P9), when the run or the request ends, or `hangUp` aborts.
   */
  async linger(call: Call, ms: Millis, hangUp: AbortSignal | undefined): Promise<Arrival | undefined> {
    if (this.#draining || this.#deps.fence.isClosed || call.isEnding || hangUp?.aborted) return undefined;
    const linger = this.#lingers.begin(call.first.message, ms, hangUp);
    this.#claims.makeRoom();
    return call.stay(linger);
  }

  /** What a call is told of a message with which it goes on; as in `entriesOf`. `'stopped'`: the shutdown was faster. */
  async entriesFor(claimed: Claimed, afterPosition: number): Promise<Uint8Array | undefined | 'stopped'> {
    const read = async () => ({ entries: await this.#deps.bodies.entriesOf(claimed, afterPosition) });
    const built = await this.#settler.untilSaved(claimed.message, read);
    return built ? built.entries : 'stopped';
  }

  /** Saves that the attempt of a held message has failed. Answers when it is attempted again, if it is; it keeps its slot. */
  async fail(claimed: Claimed, outcome: Failed['outcome']): Promise<Millis | undefined> {
    const { clock } = this.#deps;
    const nowMs = clock.nowMs();
    const decision = decide(claimed, outcome, nowMs, clock.leadMs);
    if (decision.kind === 'release') return undefined;
    if (mayShowBody(claimed, decision)) await this.#readBody(claimed);
    const settled = await this.#settler.save(claimed, decision, undefined);
    const { next } = decision.settlement.change;
    const isAgain = settled?.kind === 'saved' && !settled.isCancelled && next.kind === 'waiting';
    return isAgain ? next.dueAtMs : undefined;
  }

  /** A run was ended by this worker. `isMoreLeft`: as in `EndedAs`. */
  noteRunEnd(runKey: RunKey, isMoreLeft = false): void {
    this.#deps.bodies.forget(runKey);
    this.#lingers.endOf(runKey);
    if (isMoreLeft) this.#deps.left.noteNext(0);
  }

  noteHeard(line: OriginLine): void {
    this.#inFlight.noteHeard(line, this.#deps.clock.elapsedMs);
  }

  giveBack(line: OriginLine, bytes: number, claimToken: ClaimToken): void {
    this.#inFlight.leave(line, bytes);
    this.#tokens.delete(claimToken);
    this.#slotBecameFree();
  }

  /**
   * Makes the attempt of a claimed message that has a slot. The delivered body may be larger than was reserved: only the
   * store knew the size of a journal. If there is no room for it, the message is released, to be claimed later (P10).
   */
  start(claimed: Claimed, reservedBytes: number): void {
    const line = lineTo(claimed.message);
    const bytes = bytesOf(claimed);
    this.#inFlight.leave(line, reservedBytes);
    const fits = bytes <= reservedBytes || this.#inFlight.hasSpace(bytes);
    this.#inFlight.enter(line, fits ? bytes : reservedBytes);
    void (fits ? this.#attempt(claimed) : this.#release(claimed, reservedBytes));
  }

  /** The attempts under way. */
  get attempts(): Pick<InFlight, 'count' | 'busiest' | 'isHeldBack'> {
    return this.#inFlight;
  }

  get worker(): WorkerId {
    return this.#deps.worker;
  }

  /** Whether this worker works on the claim, or waits for an answer that may bring it. */
  holds(claimToken: ClaimToken): boolean {
    return this.#tokens.has(claimToken) || this.#claims.mayBring(claimToken);
  }

  /** Why a message that waits in its line does not start here (P14); `undefined`: it may, and will soon. */
  whatHolds(message: Pick<Message, 'projectId' | 'origin'>): Held | undefined {
    return this.#inFlight.whatHolds(lineTo(message));
  }

  /** How many attempts of the project are under way. */
  countOf(projectId: ProjectId): number {
    return this.#inFlight.countOfProject(projectId);
  }

  /** Ends the attempts in flight, uncounted: other workers may own their messages by now. Absent project: of all. */
  interrupt(projectId?: ProjectId): void {
    this.#ends.interrupt(projectId);
  }

  /**
   * Ends the attempts of messages that were cancelled, which gives up their slots and lanes now. Claims of other workers are
   * ignored, and so is an attempt that has ended: its outcome counts.
   */
  endCancelled(claimTokens: readonly ClaimToken[]): void {
    for (const token of claimTokens) {
      const own = this.#tokens.get(token);
      if (!own) continue;
      own.isCancelled = true;
      own.attempt?.interrupt();
    }
  }

  /** Of which projects this worker has more to deliver than it comes to. */
  get backlog(): Backlog {
    return this.#claims.backlog;
  }

  /** A message was saved that is due at `dueAtMs`. */
  noteDue(dueAtMs: Millis): void {
    this.#claims.noteDue(dueAtMs);
  }

  /** These were there before it starts. */
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
    this.#draining = true;
    this.#claims.stop();
    this.#lingers.endAll();
    const limit = this.#deps.clock.startTimer(limitMs, () => this.#ends.passLimit());
    while (this.#inFlight.count > 0 || !this.#claims.isIdle) {
      await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
    }
    limit.cancel();
  }

  /** Makes the attempts of what a claim has brought, a few in each turn of the event loop. */
  #begin(claimed: readonly Claimed[], askedAtMs: Millis): Promise<void> | undefined {
    const { clock, endOfTurn } = this.#deps;
    const begun = claimed.map((each) => {
      this.#inFlight.enter(lineTo(each.message), bytesOf(each));
      this.#tokens.set(each.claimToken, { askedAtMs });
      return { claimed: each, together: this.#ends.enter(each.message.projectId) };
    });
    const slices = new Slices(clock, endOfTurn, SEND_SLICE_MS);
    const sent = slices.map(begun, (each) => void this.#attempt(each.claimed, each.together));
    if (!(sent instanceof Promise)) return undefined;
    this.#claims.pace.noteSending();
    return sent.then(() => this.#claims.pace.noteSent());
  }

  /** The life of one attempt, and of what a call goes on with in it; a call that stays for it makes it. */
  async #attempt(claimed: Claimed, together = this.#ends.enter(claimed.message.projectId)): Promise<void> {
    const { clock } = this.#deps;
    const linger = this.#lingers.find(claimed);
    if (linger) {
      this.#ends.leave(together);
      return linger.hand({ claimed, reservedBytes: bytesOf(claimed) });
    }
    const call = this.calls.begin(claimed, clock.elapsedMs);
    const outcome = await this.#deliver(claimed, call, together.abort.signal);
    this.#ends.leave(together);
    if (call) {
      const ends = await call.end(outcome, clock.elapsedMs);
      await Promise.all(ends.map((end) => this.#conclude(end, call)));
      if (call.rest) this.endRest(call.rest);
    } else {
      await this.#conclude({ claimed, outcome });
    }
    if (outcome.kind === 'answered') outcome.release?.();
  }

  #conclude({ claimed, outcome, returned }: CallEnd, call?: Call): Promise<void> {
    const { clock } = this.#deps;
    const nowMs = clock.nowMs();
    const decision =
      returned && outcome.kind === 'answered'
        ? decideEnd(claimed, outcome, returned, nowMs, call?.run)
        : decide(claimed, outcome, nowMs, clock.leadMs);
    return decision.kind === 'release' ? this.#release(claimed, bytesOf(claimed)) : this.#settle(claimed, decision);
  }

  /** Of a step of a run, the journal. False: the time limit of the shutdown passed before it was read. */
  async #readBody(claimed: Claimed): Promise<boolean> {
    const { bodies } = this.#deps;
    if (!claimed.journal) return true;
    const read = await this.#settler.untilSaved(claimed.message, async () => ({ body: await bodies.bodyOf(claimed) }));
    if (read?.body) claimed.deliveredBody = read.body;
    return read !== undefined;
  }

  /** Time may have passed since the claim: a message that may belong to another worker by now is not sent. */
  async #deliver(claimed: Claimed, call: Call | undefined, end: AbortSignal): Promise<Outcome> {
    const { clock, delivery, fence, reports, spans } = this.#deps;
    if (claimed.journal && !(await this.#readBody(claimed))) return { kind: 'interrupted' };
    const own = this.#tokens.get(claimed.claimToken) ?? { askedAtMs: clock.elapsedMs };
    const mayBegin = !end.aborted && !own.isCancelled && fence.mayBegin(claimed.message.projectId, own.askedAtMs);
    if (!mayBegin) return { kind: 'interrupted' };
    const line = lineTo(claimed.message);
    const sentAtMs = clock.elapsedMs;
    const sent = this.#inFlight.noteSent(line, sentAtMs);
    this.#claims.awaitSilence();
    if (spans) {
      const trace = traceWithin(spanOfAttempt(claimed), claimed.message.settings.trace);
      if (trace) claimed.trace = trace;
    }
    const outcome = await delivery.attempt(claimed, end, (attempt) => {
      own.attempt = attempt;
      call?.begun(attempt);
    });
    call?.endLinger();
    const endedAtMs = clock.elapsedMs;
    claimed.durationMs = endedAtMs - sentAtMs;
    reports.attempted(claimed, outcome, clock.nowMs());
    this.#inFlight.noteOver(sent);
    if (outcome.kind === 'answered') this.#inFlight.noteAnswer(line, endedAtMs, outcome.status);
    else if (outcome.kind === 'unreachable') {
      const isNowHeldBack = this.#inFlight.noteNoAnswer(line, outcome.reason === 'timeout');
      if (isNowHeldBack) reports.heldBack(claimed.message.origin);
    }
    return outcome;
  }

  /**
   * The slot of the message for the next one of its lane, which saves that one a claim. Not while others wait for a
   * slot of the origin or of the worker: a lane that always has a next message would keep them from their turn. Nor
   * when the origin or the project must have fewer attempts than it has: then it loses its slots, in a lane or not
   * (P9).
   */
  async #handoffOf(claimed: Claimed): Promise<Handoff | undefined> {
    const line = lineTo(claimed.message);
    const bytes = bytesOf(claimed);
    const isWaitedFor = this.#claims.lines.has(line) || !this.#inFlight.hasSpace(bytes);
    const mayHandOff = !this.#draining && !this.#deps.fence.isClosed && this.#inFlight.mayHandOff(line, bytes);
    if (isWaitedFor || !mayHandOff) return undefined;
    const claimToken = await this.#deps.numbers.take(1);
    this.#tokens.set(claimToken, { askedAtMs: this.#deps.clock.elapsedMs });
    const bytesSetAside = this.#inFlight.setAside(SUCCESSOR_BYTES_MAX - bytes);
    return { worker: this.#deps.worker, claimToken, bytesMax: bytes + bytesSetAside };
  }

  #handOver(done: Claimed, next: Claimed): void {
    this.#inFlight.leave(lineTo(done.message), bytesOf(done));
    this.#tokens.delete(done.claimToken);
    this.#inFlight.enter(lineTo(next.message), bytesOf(next));
    void this.#attempt(next);
    this.#slotBecameFree();
  }

  /** Saves the decision with the messages that follow from it, dispatches those, and gives up the slot. */
  async #settle(claimed: Claimed, decision: Settling): Promise<void> {
    const { message } = claimed;
    if (mayShowBody(claimed, decision)) await this.#readBody(claimed);
    this.#claims.pace.noteSettling();
    const handoff = isInLane(message)
      ? await this.#settler.untilSaved(message, () => this.#handoffOf(claimed))
      : undefined;
    const settled = await this.#settler.save(claimed, decision, handoff);
    this.#claims.pace.noteSettled();
    if (handoff) this.#inFlight.putBack(handoff.bytesMax - bytesOf(claimed));
    if (settled?.kind === 'saved' && settled.next) return this.#handOver(claimed, settled.next);
    if (handoff) this.#tokens.delete(handoff.claimToken);
    this.giveBack(lineTo(message), bytesOf(claimed), claimed.claimToken);
  }

  /** Gives the claim back as if it had never been made, and its slot, which has `bytes`. */
  async #release(claimed: Claimed, bytes: number): Promise<void> {
    await this.#settler.release(claimed);
    this.giveBack(lineTo(claimed.message), bytes, claimed.claimToken);
  }

  #slotBecameFree(): void {
    if (this.#draining) this.#tellIfIdle();
    else this.wake();
  }

  #tellIfIdle(): void {
    if (this.#inFlight.count > 0 || !this.#claims.isIdle) return;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }
}

/** The failure callback of a run may show what was delivered, or would have been if no call had held it. */
function mayShowBody({ isHeld }: Claimed, { failsRun }: Settling): boolean {
  return failsRun !== undefined && isHeld === true;
}

function isInLane({ settings }: Message): boolean {
  return settings.queueName !== undefined || settings.flowControl !== undefined;
}

/** About how many bytes a message takes in memory during its attempt. */
function bytesOf({ message, journal, isHeld }: Claimed): number {
  return isHeld || !journal ? message.body.length : journal.bytes;
}
