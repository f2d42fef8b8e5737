/** The state of a running claim: the messages taken so far, and the remaining capacity. */

import type { ClaimRequest } from '../../../engine/dispatch/claims.ts';
import { type BacklogKey, backlogKey } from '../../../engine/lanes/backlog-key.ts';
import type { ProjectId } from '../../../engine/model.ts';
import type { SqlValue, Transaction } from '../../driver.ts';
import { type FlowLane, FlowLanes, flowRefsOf } from '../lanes/flow-lanes.ts';
import { ProjectGate, projectsWithWaiting, releaseWaiting } from '../lanes/project-gate.ts';
import { WAIT_STATE } from '../lanes/wait-states.ts';
import { ALL_PROJECTS, type LockedProjects } from '../locking/locked-projects.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { ClaimCapacity } from './claim-capacity.ts';

export interface Candidate {
  key: number;
  project_id: number;
  origin: string;
  due_at_ms: number;
  bytes: number;
  flow_key: string | null;
  /** Whether the backlog of this message has others. Absent if all backlogs are empty or the message itself is in one. */
  is_behind?: number | boolean;
}

export const CANDIDATE_FIELDS = 'key, project_id, origin, due_at_ms, bytes, flow_key';

/** The fields of a candidate with `is_behind`. */
const CANDIDATE_BEHIND_FIELDS = `${CANDIDATE_FIELDS}, exists lookup (select 1 from messages w
  where w.project_id = messages.project_id and w.origin = messages.origin and w.claim_token is null and w.wait_state = ${WAIT_STATE.origin}
  ) as is_behind`;

export class ClaimRound {
  readonly tx: Transaction;
  readonly nowMs: number;
  readonly flows: FlowLanes;
  /** Projects that are being moved to or from another cell. Messages of these projects are left unchanged. */
  readonly moving: ReadonlySet<ProjectId>;
  readonly taken: (Candidate & { claimToken: number })[] = [];
  readonly #gate: ProjectGate;
  readonly #locked: LockedProjects;
  readonly #request: ClaimRequest;
  readonly #capacity: ClaimCapacity;
  /** Backlogs that this claim has emptied, although the new wait states of their messages are not saved yet. */
  readonly #emptied = new Set<BacklogKey>();
  readonly #toOrigin: Candidate[] = [];
  readonly #toLane: [key: number, backlog: number][] = [];
  #countMax: number;
  #bytes = 0;
  #bytesReached = false;
  #leftDueAtMs: number | undefined;

  constructor(
    { tx, locked, limits }: WriteContext,
    request: ClaimRequest,
    nowMs: number,
    moving: ReadonlySet<ProjectId>,
  ) {
    this.tx = tx;
    this.moving = moving;
    this.#locked = locked;
    this.nowMs = nowMs;
    this.#request = request;
    this.#capacity = new ClaimCapacity(request);
    this.#countMax = request.limit;
    this.flows = new FlowLanes(tx, nowMs);
    this.#gate = new ProjectGate(tx, limits.parallelismMax);
  }

  /** The fields of candidates that are in no backlog. */
  get candidateFields(): string {
    return this.#request.hasBacklogs ? CANDIDATE_BEHIND_FIELDS : CANDIDATE_FIELDS;
  }

  /** How many messages the claim may take. */
  get limit(): number {
    return this.#request.limit;
  }

  /** Until the next call, limits the messages of the whole claim to `count`, within the limit of the request. */
  limitTo(count: number): void {
    this.#countMax = Math.min(count, this.#request.limit);
  }

  get isFull(): boolean {
    return this.#bytesReached || this.taken.length >= this.#countMax;
  }

  get messagesLeft(): number {
    return this.#countMax - this.taken.length;
  }

  /** The due time of a message that the claim examined and left in the due index. */
  get leftDueAtMs(): number | undefined {
    return this.#leftDueAtMs;
  }

  /** Notes that `candidates`, or messages after them, stay in the due index. */
  noteLeft(candidates: readonly Candidate[]): void {
    this.#leftDueAtMs ??= candidates.at(-1)?.due_at_ms;
  }

  /** The projects of messages that were taken or moved to backlogs. All other changed messages are of locked projects. */
  get projects(): ProjectId[] {
    return [...this.taken, ...this.#toOrigin].map(({ project_id }) => project_id);
  }

  /** The backlogs to which the claim has moved messages. */
  get waitingBacklogs(): BacklogKey[] {
    return [...new Set(this.#toOrigin.map(({ project_id, origin }) => backlogKey(project_id, origin)))];
  }

  capacityOf(backlog: BacklogKey): number {
    return this.#capacity.of(backlog);
  }

  /**
   * Whether the lanes of a candidate's project may be touched. A candidate that appeared after the projects were locked
   * waits for the next claim.
   */
  mayTouch({ project_id, flow_key }: Pick<Candidate, 'project_id' | 'flow_key'>): boolean {
    return (flow_key === null && !this.#gate.isLimited) || this.#locked.has(project_id);
  }

  /** Whether the claim may touch no lane, because no project with a lane to serve was locked. */
  get touchesNoLane(): boolean {
    return this.#locked.size === 0;
  }

  /**
   * Whether the claim has capacity left but could not lock all projects, because other workers have locked projects with
   * due messages.
   */
  get leftToOthers(): boolean {
    return this.#locked !== ALL_PROJECTS && !this.isFull;
  }

  /** Counts the attempts in flight of the projects of `candidates`. */
  async load(candidates: readonly Candidate[]): Promise<void> {
    await this.#gate.load(candidates.map(({ project_id }) => project_id));
  }

  /** Releases messages that wait for projects with capacity. Messages released earlier may wait for another lane now. */
  async releaseWaitingOfProjects(): Promise<void> {
    if (!this.#gate.isLimited) return;
    const projects = await projectsWithWaiting(this.tx);
    const lockedProjects = projects.filter((projectId) => this.#locked.has(projectId));
    const released = await releaseWaiting(this.tx, this.#gate, lockedProjects);
    await this.flows.load(flowRefsOf(released));
  }

  /** Whether a project has capacity left and messages that wait for it. */
  async hasWaitingWithCapacity(): Promise<boolean> {
    if (!this.#gate.isLimited) return false;
    const projectIds = await projectsWithWaiting(this.tx);
    await this.#gate.load(projectIds);
    return projectIds.some((projectId) => !this.moving.has(projectId) && this.#gate.capacityOf(projectId) > 0);
  }

  /** Takes a candidate of the due index or of a key with capacity, or lets it wait for its endpoint or project. */
  takeOrWait(candidate: Candidate, mayTake = true): void {
    if (this.#gate.capacityOf(candidate.project_id) === 0) this.#toLane.push([candidate.key, WAIT_STATE.project]);
    else if (mayTake && this.#hasCapacity(candidate) && this.#take(candidate)) return;
    else this.#toOrigin.push(candidate);
    this.#laneOf(candidate)?.noteReleased();
  }

  /** Takes a candidate of a backlog with capacity. Returns false if the candidate stays because the worker is full. */
  takeOrSendBack(candidate: Candidate): boolean {
    const { key, project_id } = candidate;
    const lane = this.#laneOf(candidate);
    if (this.#gate.capacityOf(project_id) === 0) {
      this.#toLane.push([key, WAIT_STATE.project]);
      return true;
    }
    if (lane && lane.startsLeft(this.nowMs) === 0) {
      this.#toLane.push([key, WAIT_STATE.flow]);
      lane.undoRelease();
      return true;
    }
    if (!this.#take(candidate)) return false;
    lane?.undoRelease();
    return true;
  }

  /** Saves the new wait states of the moved messages. */
  async saveMoves(): Promise<void> {
    const moves: SqlValue[][] = [...this.#toOrigin.map(({ key }) => [key, WAIT_STATE.origin]), ...this.#toLane];
    await this.tx.updateMany('messages', 'key', ['wait_state'], moves);
  }

  /**
   * Takes nothing after a message that exceeds the remaining bytes: otherwise small messages would always overtake
   * large ones.
   */
  #take(candidate: Candidate): boolean {
    if (this.isFull) return false;
    const mayExceed = this.taken.length === 0 && !this.#request.isStrict;
    if (!mayExceed && this.#bytes + candidate.bytes > this.#request.bytesMax) {
      this.#bytesReached = true;
      return false;
    }
    this.#bytes += candidate.bytes;
    this.#capacity.take(backlogKey(candidate.project_id, candidate.origin));
    this.taken.push({ ...candidate, claimToken: this.#request.firstToken + this.taken.length });
    this.#gate.start(candidate.project_id);
    this.#laneOf(candidate)?.start(this.nowMs);
    return true;
  }

  noteEmptied(backlog: BacklogKey): void {
    this.#emptied.add(backlog);
  }

  /** A due message must not overtake the messages in its backlog. */
  #hasCapacity({ project_id, origin, is_behind }: Candidate): boolean {
    const backlog = backlogKey(project_id, origin);
    return (!is_behind || this.#emptied.has(backlog)) && this.capacityOf(backlog) > 0;
  }

  #laneOf({ project_id, flow_key }: Candidate): FlowLane | undefined {
    return flow_key === null ? undefined : this.flows.find(project_id, flow_key);
  }
}
