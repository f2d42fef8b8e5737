/**
 * Recovers the work of lost workers and of lost responses of the store: expires late workers, releases claims on which no
 * worker works, and finds backlogs that perhaps no worker serves. Heartbeats report whether there is such work.
 */
import type { Store } from '../../store/store.ts';
import type { EngineDeps, Recovery } from '../deps.ts';
import type { BacklogKey } from '../lanes/backlog-key.ts';
import { readBacklogs } from '../lanes/backlogs.ts';
import type { ClaimRef, ClaimToken } from '../model.ts';
import type { HeartbeatResponse } from './store.ts';

/** The number of heartbeats from one check for left-over claims to the next, if nothing else calls for a check. */
const CLAIM_CHECK_EVERY = 3;
/** The maximum of claims that one transaction releases, which takes a few milliseconds. */
const CLAIM_BATCH = 200;
/**
 * The backlogs that are read after a heartbeat. If perhaps no worker knows some backlogs, all backlogs are read, in
 * larger pages.
 */
const BACKLOG_PAGE = 500;

/** How this worker recovers by heartbeats. */
export type HeartbeatRecovery = Omit<Extract<Recovery, { kind: 'heartbeat' }>, 'kind'>;

export type RescueContext = Pick<EngineDeps, 'log' | 'worker' | 'operatorEvents'> & {
  store: {
    workers: Pick<Store['workers'], 'expireWorkers' | 'orphanedClaims' | 'claimsOf'>;
    messages: Pick<Store['messages'], 'release' | 'releaseUnlimited' | 'waitingBacklogs'>;
  };
};

/** The parts of the worker that are notified of the results. */
export interface RescueListeners {
  /** Has the slots for attempts, and serves backlogs. */
  dispatcher: { hasClaim(claimToken: ClaimToken): boolean; noteWaitingBacklog(backlog: BacklogKey): void };
  /**
   * Notes that a worker has expired. It may have left a task of several transactions unfinished, such as the deletion of
   * a queue.
   */
  noteExpiredWorker(): void;
}

export class Rescue {
  readonly #context: RescueContext;
  readonly #recovery: HeartbeatRecovery;
  #listeners: RescueListeners | undefined;
  #heartbeats = 0;
  #stopped = false;
  /** Whether there may be backlogs that no worker knows. */
  #hasLostBacklogs = false;
  /** The last backlog of the latest page, if more backlogs follow. */
  #lastBacklog: BacklogKey | undefined;
  /** Whether a commit may have succeeded although the store reported a failure. */
  #isCommitUnknown = false;
  /** Claims in this worker's name that this worker did not know at the last check. */
  #unknownClaims: ReadonlySet<ClaimToken> = new Set();

  constructor(context: RescueContext, own: HeartbeatRecovery) {
    this.#context = context;
    this.#recovery = own;
  }

  /** Notifies `listeners` from now on. */
  start(listeners: RescueListeners): void {
    this.#listeners = listeners;
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Notes that a commit may have succeeded: the next checks find the claims that this commit left. */
  noteCommitUnknown(): void {
    this.#isCommitUnknown = true;
    this.noteLostBacklogs();
  }

  /** Notes that perhaps no worker knows some of the backlogs: all backlogs are read after the next heartbeat. */
  noteLostBacklogs(): void {
    this.#hasLostBacklogs = true;
  }

  /**
   * Does the work that a heartbeat asks for. Left-over claims come last, because the claims of a project that is moving
   * cannot be released before the project has moved. Throws `StoreUnavailable`.
   */
  async recover(response: Pick<HeartbeatResponse, 'hasLate' | 'hasBacklogs' | 'hasClaims'>): Promise<void> {
    this.#heartbeats += 1;
    if (response.hasLate) await this.expire();
    if (this.#hasLostBacklogs) await this.#readAllBacklogs();
    else if (response.hasBacklogs) await this.#readBacklogPage();
    if ((response.hasClaims && this.#heartbeats % CLAIM_CHECK_EVERY === 0) || this.#isCommitUnknown)
      await this.#releaseLeftOver();
  }

  /**
   * Expires late workers and releases their claims. If such a worker had a limit for projects, the messages that wait for that
   * limit are released too.
   */
  async expire(): Promise<void> {
    const { store, log, operatorEvents } = this.#context;
    const { clock } = this.#recovery;
    const isReported = operatorEvents?.thresholds.worker_lost !== undefined;
    const expired = await store.workers.expireWorkers({ nowMs: clock.nowMs(), isReported });
    for (const worker of expired) log.info('worker_gone', { worker });
    if (expired.length > 0) this.noteLostBacklogs();
    await this.#releaseOrphans();
    while ((await store.messages.releaseUnlimited({ nowMs: clock.nowMs() })) > 0);
    if (expired.length > 0) this.#listeners?.noteExpiredWorker();
  }

  /** Releases the claims of lost workers. There may be many claims, and a claim that was being saved may appear later. */
  async #releaseOrphans(): Promise<void> {
    const { store } = this.#context;
    for (let count = CLAIM_BATCH; count === CLAIM_BATCH; ) {
      const claims = await store.workers.orphanedClaims({ limit: CLAIM_BATCH });
      count = claims.length;
      await this.#release('rescued', claims);
    }
  }

  /**
   * Releases left-over claims. These are claims of lost workers, and claims in this worker's name that the worker does
   * not know, because the response was lost. A claim in this worker's name must be unknown at two checks: at a single
   * check, the attempt of the claim may just have ended.
   */
  async #releaseLeftOver(): Promise<void> {
    const { store, worker } = this.#context;
    const { isActiveElsewhere = () => false } = this.#recovery;
    const { dispatcher } = this.#listeners as RescueListeners;
    this.#isCommitUnknown = false;
    await this.#releaseOrphans();
    const unknown = (await store.workers.claimsOf({ worker })).filter(
      ({ claimToken }) => !(dispatcher.hasClaim(claimToken) || isActiveElsewhere(claimToken)),
    );
    const leftOver = unknown.filter(({ claimToken }) => this.#unknownClaims.has(claimToken));
    this.#unknownClaims = new Set(unknown.map(({ claimToken }) => claimToken));
    if (unknown.length > 0) this.#isCommitUnknown = true; // checks again after the next heartbeat
    await this.#release('given_back', leftOver);
  }

  async #release(event: string, claims: ClaimRef[]): Promise<void> {
    const { store, log } = this.#context;
    if (claims.length === 0) return;
    await store.messages.release({ claims, nowMs: this.#recovery.clock.nowMs() });
    log.info(event, { count: claims.length });
  }

  /**
   * Reads the backlogs that other workers fill. Those workers also serve these backlogs, but only while they have free
   * slots, and slow endpoints can occupy all their slots. This worker is not notified of these backlogs in any other way.
   * So the messages of a backlog may wait for one heartbeat; then all workers serve the backlog until it is empty.
   */
  async #readBacklogPage(): Promise<void> {
    const page = { after: this.#lastBacklog, limit: BACKLOG_PAGE };
    const backlogs = await this.#context.store.messages.waitingBacklogs(page);
    this.#lastBacklog = backlogs.length === BACKLOG_PAGE ? backlogs.at(-1) : undefined;
    this.#noteBacklogs(backlogs);
  }

  async #readAllBacklogs(): Promise<void> {
    this.#hasLostBacklogs = false;
    for await (const backlogs of readBacklogs(this.#context.store.messages)) {
      if (this.#stopped) return;
      this.#noteBacklogs(backlogs);
    }
  }

  #noteBacklogs(backlogs: readonly BacklogKey[]): void {
    for (const backlog of backlogs) this.#listeners?.dispatcher.noteWaitingBacklog(backlog);
  }
}
