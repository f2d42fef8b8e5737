/**
 * What does a worker do for others that are gone, and for what a lost answer has left over? It expires late workers, gives back
 * claims that nobody works on, and learns of lines that perhaps nobody serves, after heartbeats that say that there are such.
 */
import type { Store } from '../../store/store.ts';
import type { EngineDeps, Recovery } from '../deps.ts';
import type { BacklogKey } from '../lanes/backlog-key.ts';
import { readBacklogs } from '../lanes/backlogs.ts';
import type { ClaimRef, ClaimToken } from '../model.ts';
import type { HeartbeatAnswer } from './store.ts';

/** Heartbeats between two looks for claims that are left over, when there is no special reason to look. */
const LOOK_EVERY = 3;
/** Claims released in one transaction: a few milliseconds of work. */
const PIECE = 200;
/** Lines that are read with a heartbeat. When perhaps no worker knows some of them, all are read, in larger pieces. */
const LINES_PIECE = 500;

/** How this worker recovers by heartbeats. */
export type Heartbeats = Omit<Extract<Recovery, { kind: 'heartbeat' }>, 'kind'>;

export type RescueContext = Pick<EngineDeps, 'log' | 'worker' | 'operatorEvents'> & {
  store: {
    workers: Pick<Store['workers'], 'expireWorkers' | 'orphanedClaims' | 'claimsOf'>;
    messages: Pick<Store['messages'], 'release' | 'sendHeldOn' | 'waitingBacklogs'>;
  };
};

/** Hear of what it finds. */
export interface RescueListeners {
  /** Has the slots for attempts. */
  dispatcher: { holds(claimToken: ClaimToken): boolean; noteWaitingBacklog(backlog: BacklogKey): void };
  /** A worker has expired that may have been doing something in pieces, such as the deletion of a queue. */
  noteDeath(): void;
}

export class Rescue {
  readonly #context: RescueContext;
  readonly #own: Heartbeats;
  #listeners: RescueListeners | undefined;
  #heartbeats = 0;
  #stopped = false;
  /** Perhaps no worker knows some of the lines. */
  #linesAreLost = false;
  /** Where the last piece of lines ended, if there are more. */
  #lastLine: BacklogKey | undefined;
  /** Something may have been saved although the store reported a failure. */
  #isCommitUnknown = false;
  /** Claims in this worker's name that it did not know at the last look. */
  #unknownClaims: ReadonlySet<ClaimToken> = new Set();

  constructor(context: RescueContext, own: Heartbeats) {
    this.#context = context;
    this.#own = own;
  }

  /** From now on tells `listeners` what it finds. */
  start(listeners: RescueListeners): void {
    this.#listeners = listeners;
  }

  stop(): void {
    this.#stopped = true;
  }

  /** It is not known whether something was saved: the next looks will find what is left over. */
  noteCommitUnknown(): void {
    this.#isCommitUnknown = true;
    this.noteLinesLost();
  }

  /** Perhaps no worker knows some of the lines: all are read after the next heartbeat. */
  noteLinesLost(): void {
    this.#linesAreLost = true;
  }

  /**
   * Does what a heartbeat asks for. Left-over claims come last: those of a project that moves cannot be given back before it
   * has. Throws `StoreUnavailable`.
   */
  async after(answer: Pick<HeartbeatAnswer, 'hasLate' | 'hasBacklogs' | 'hasClaims'>): Promise<void> {
    this.#heartbeats += 1;
    if (answer.hasLate) await this.expire();
    if (this.#linesAreLost) await this.#readAllLines();
    else if (answer.hasBacklogs) await this.#readSomeLines();
    if ((answer.hasClaims && this.#heartbeats % LOOK_EVERY === 0) || this.#isCommitUnknown) await this.#look();
  }

  /**
   * Expires late workers and releases the claims that have no worker any more. Some of these workers may have had a limit
   * for projects that no longer exists: messages that wait for it continue.
   */
  async expire(): Promise<void> {
    const { store, log, operatorEvents } = this.#context;
    const { clock } = this.#own;
    const isTold = operatorEvents?.thresholds.worker_lost !== undefined;
    const dead = await store.workers.expireWorkers({ nowMs: clock.nowMs(), isTold });
    for (const worker of dead) log.info('worker_gone', { worker });
    if (dead.length > 0) this.noteLinesLost();
    await this.#releaseOrphans();
    while ((await store.messages.sendHeldOn({ nowMs: clock.nowMs() })) > 0);
    if (dead.length > 0) this.#listeners?.noteDeath();
  }

  /** There may be many after a worker's death. One may also appear later: it was being saved when its worker died. */
  async #releaseOrphans(): Promise<void> {
    const { store } = this.#context;
    for (let count = PIECE; count === PIECE; ) {
      const claims = await store.workers.orphanedClaims({ limit: PIECE });
      count = claims.length;
      await this.#release('rescued', claims);
    }
  }

  /**
   * Releases claims that are left over: those of workers that are gone, and those in this worker's name that it does
   * not know, because the answer was lost. The latter must be unknown at two looks: at one look, the attempt may just
   * have ended.
   */
  async #look(): Promise<void> {
    const { store, worker } = this.#context;
    const { isHeldElsewhere = () => false } = this.#own;
    const { dispatcher } = this.#listeners as RescueListeners;
    this.#isCommitUnknown = false;
    await this.#releaseOrphans();
    const unknown = (await store.workers.claimsOf({ worker })).filter(
      ({ claimToken }) => !(dispatcher.holds(claimToken) || isHeldElsewhere(claimToken)),
    );
    const leftOver = unknown.filter(({ claimToken }) => this.#unknownClaims.has(claimToken));
    this.#unknownClaims = new Set(unknown.map(({ claimToken }) => claimToken));
    if (unknown.length > 0) this.#isCommitUnknown = true; // the next heartbeat brings the next look
    await this.#release('given_back', leftOver);
  }

  async #release(event: string, claims: ClaimRef[]): Promise<void> {
    const { store, log } = this.#context;
    if (claims.length === 0) return;
    await store.messages.release({ claims, nowMs: this.#own.clock.nowMs() });
    log.info(event, { count: claims.length });
  }

  /**
   * Reads lines that other workers fill. Those workers serve them too, but only while they have room: a worker may be
   * full for as long as its endpoints take. Nothing else tells this worker of these lines. A line that it learns of
   * late costs its messages one heartbeat; then all workers serve it until it is empty.
   */
  async #readSomeLines(): Promise<void> {
    const piece = { after: this.#lastLine, limit: LINES_PIECE };
    const lines = await this.#context.store.messages.waitingBacklogs(piece);
    this.#lastLine = lines.length === LINES_PIECE ? lines.at(-1) : undefined;
    this.#noteLines(lines);
  }

  async #readAllLines(): Promise<void> {
    this.#linesAreLost = false;
    for await (const lines of readBacklogs(this.#context.store.messages)) {
      if (this.#stopped) return;
      this.#noteLines(lines);
    }
  }

  #noteLines(backlogs: readonly BacklogKey[]): void {
    for (const line of backlogs) this.#listeners?.dispatcher.noteWaitingBacklog(line);
  }
}
