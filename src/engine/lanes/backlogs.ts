/**
 * The endpoint backlogs that have messages, in rotation order. They are a copy of the store's index of waiting messages.
 * The copy is needed because only the worker knows which backlogs have capacity. A claim that asked the database would
 * read ten thousand backlogs without capacity to find one backlog with capacity, and no new message could get a slot
 * without a query.
 *
 * Invariant: each backlog with messages is in memory, or it is unknown (not healthy) and its project is in `#unread`. A
 * backlog in memory may be empty: the claim that finds the backlog empty deletes it. Healthy and unknown backlogs are
 * kept apart, so that no time is spent on backlogs that may not start (P9). At most `BACKLOGS_MAX` unknown backlogs of a
 * project are in memory (P10).
 */
import type { Store } from '../../store/store.ts';
import type { Millis, ProjectId } from '../model.ts';
import { type BacklogKey, backlogKey, parseBacklogKey } from './backlog-key.ts';
import type { InFlight } from './in-flight.ts';
import { isFresh } from './lag.ts';

/** The maximum of unknown backlogs of one project in memory: about a megabyte. */
const BACKLOGS_MAX = 10_000;
/** The maximum of backlogs that one query reads: a few milliseconds of the store's work. */
export const BACKLOGS_READ = 2_000;
/**
 * Backlogs with attempts that one call of `next` examines; thousands of backlogs may have silent attempts. Backlogs
 * without capacity are moved to the end, so that the next call examines other backlogs first.
 */
const EXAMINED_MAX = 500;
/** The maximum of projects that may be served before all other projects in one claim. */
const FRESH_MAX = 4;

/** The backlogs of a project, each with its position in the rotation: the backlog with the lowest position is next. */
interface ProjectBacklogs {
  /** How long the project's latest claimed message had waited. */
  lagMs: Millis;
  healthy: Map<BacklogKey, number>;
  unknown: Map<BacklogKey, number>;
}

/**
 * How far the unknown backlogs of a project that are only in the store have been read, in order of their keys. If a
 * backlog is left out of memory during a pass, the next pass starts at the first key again, so that no backlog is missed.
 */
interface UnreadBacklogs {
  /** The last backlog that was read; at first a key before all backlogs. */
  after: BacklogKey;
  /** Whether a backlog was left out of memory during this pass: its key may be before `after`. */
  mustRestart: boolean;
  /** Whether batches are being read, until the memory limit is reached. */
  isBeingRead: boolean;
}

/** The backlogs to serve now. The first `fresh` backlogs belong to projects with little lag. */
export interface NextBacklogs {
  backlogs: BacklogKey[];
  fresh: number;
}

/** The backlogs of a project to read: the first `limit` keys after `after`. */
export interface BacklogRange {
  projectId: ProjectId;
  after: BacklogKey;
  limit: number;
}

export const NO_BACKLOGS: NextBacklogs = { backlogs: [], fresh: 0 };

interface BacklogCandidate {
  backlog: BacklogKey;
  position: number;
  /** Attempts in flight. */
  count: number;
}

/** All backlogs with messages, in batches of up to `BACKLOGS_READ`. Throws `StoreUnavailable`. */
export async function* readBacklogs(
  messages: Pick<Store['messages'], 'waitingBacklogs'>,
): AsyncGenerator<BacklogKey[]> {
  let backlogs: BacklogKey[] = [];
  do {
    backlogs = await messages.waitingBacklogs({ after: backlogs.at(-1), limit: BACKLOGS_READ });
    yield backlogs;
  } while (backlogs.length === BACKLOGS_READ);
}

export class Backlogs {
  readonly #inFlight: InFlight;
  readonly #byProject = new Map<ProjectId, ProjectBacklogs>();
  readonly #unread = new Map<ProjectId, UnreadBacklogs>();
  readonly #backlogsMax: number;
  #lastPosition = 0;
  #isFreshFirst = false;
  #isTruncated = false;

  constructor(inFlight: InFlight, backlogsMax = BACKLOGS_MAX) {
    this.#inFlight = inFlight;
    this.#backlogsMax = backlogsMax;
  }

  get isEmpty(): boolean {
    return this.#byProject.size === 0 && this.#unread.size === 0;
  }

  /**
   * Whether the latest call of `next` may have missed backlogs with capacity, because this call did not examine all
   * backlogs.
   */
  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  /** Whether messages may wait in the backlog. */
  has(backlog: BacklogKey): boolean {
    return (
      this.#positionOf(backlog) !== undefined ||
      (this.#unread.has(parseBacklogKey(backlog).projectId) && !this.#inFlight.isHealthy(backlog))
    );
  }

  /** Returns up to `max` backlogs, in no particular order. */
  some(max: number): BacklogKey[] {
    const selected: BacklogKey[] = [];
    for (const { healthy, unknown } of this.#byProject.values()) {
      for (const backlogs of [healthy, unknown]) {
        for (const backlog of backlogs.keys()) {
          if (selected.length === max) return selected;
          selected.push(backlog);
        }
      }
    }
    return selected;
  }

  /** Adds the backlog at the end of the rotation, unless the backlog is in memory already. */
  add(backlog: BacklogKey): void {
    if (this.#positionOf(backlog) === undefined) this.#putLast(backlog);
  }

  /**
   * The next batch to read, if a project has backlogs that are only in the store. Reading starts when less than half of
   * the allowed backlogs are in memory, and continues until the limit is reached, so that batches are large.
   */
  nextRange(): BacklogRange | undefined {
    for (const [projectId, unread] of this.#unread) {
      unread.isBeingRead ||= this.#unknownCountOf(projectId) < this.#backlogsMax / 2;
      if (unread.isBeingRead) return { projectId, after: unread.after, limit: this.#batchSize };
    }
    return undefined;
  }

  /** Notes `backlogs`, the result of reading the range. The last of these backlogs may belong to later projects. */
  noteRead({ projectId, limit }: BacklogRange, backlogs: readonly BacklogKey[]): void {
    const own = backlogs.filter((backlog) => parseBacklogKey(backlog).projectId === projectId);
    for (const backlog of own) if (this.#positionOf(backlog) === undefined) this.#put(backlog, this.#nextPosition());
    const unread = this.#unread.get(projectId);
    if (!unread) return;
    const last = own.length === limit ? own.at(-1) : undefined;
    if (last === undefined && !unread.mustRestart) this.#unread.delete(projectId);
    else if (last === undefined) Object.assign(unread, { after: backlogKey(projectId, ''), mustRestart: false });
    else unread.after = last;
    unread.isBeingRead = this.#unknownCountOf(projectId) + this.#batchSize <= this.#backlogsMax;
  }

  delete(backlog: BacklogKey): void {
    const { projectId } = parseBacklogKey(backlog);
    const backlogs = this.#byProject.get(projectId);
    if (!backlogs) return;
    backlogs.healthy.delete(backlog);
    backlogs.unknown.delete(backlog);
    if (backlogs.healthy.size + backlogs.unknown.size === 0) this.#byProject.delete(projectId);
  }

  /**
   * Notes that the health of the backlog has changed. The backlog and its project keep their positions, even if the
   * project has no other backlog. A backlog that has become healthy is added if it may have messages in the store.
   */
  reclassify(backlog: BacklogKey): void {
    const position = this.#positionOf(backlog);
    if (position !== undefined) this.#put(backlog, position);
    else if (this.#inFlight.isHealthy(backlog) && this.#unread.has(parseBacklogKey(backlog).projectId))
      this.add(backlog);
  }

  /**
   * Moves the backlog and its project to the end of the rotation, because the backlog was served and still has messages.
   */
  moveToEnd(backlog: BacklogKey): void {
    const { projectId } = parseBacklogKey(backlog);
    const backlogs = this.#byProject.get(projectId);
    this.#byProject.delete(projectId);
    if (backlogs) this.#byProject.set(projectId, backlogs);
    this.#putLast(backlog);
  }

  /** Notes that a message of the project was claimed after a wait of `lagMs`. */
  noteLag(projectId: ProjectId, lagMs: Millis): void {
    const backlogs = this.#byProject.get(projectId);
    if (backlogs) backlogs.lagMs = lagMs;
  }

  /**
   * Returns up to `max` backlogs that may start an attempt and are not in `skipped`. Projects are served round-robin:
   * first the project with the fewest slots; among projects with equal slots, the project served longest ago. Every
   * second call puts one backlog of each project with little lag (up to `FRESH_MAX`) first. The cost grows with the
   * attempts in flight and the projects with backlogs, not with the number of backlogs.
   */
  next(max: number, skipped: ReadonlySet<BacklogKey>): NextBacklogs {
    this.#isTruncated = false;
    const projects = [...this.#byProject].filter(([projectId]) => this.#inFlight.capacityOfProject(projectId).all > 0);
    projects.sort(([a], [b]) => this.#inFlight.slotsOfProject(a) - this.#inFlight.slotsOfProject(b));
    this.#isFreshFirst = !this.#isFreshFirst;
    const freshMax = this.#isFreshFirst ? FRESH_MAX : 0;
    const largestLagMs = Math.max(...projects.map(([, { lagMs }]) => lagMs));
    const fresh: BacklogKey[] = [];
    const lists = projects.slice(0, max).map(([projectId, backlogs]) => {
      const list = this.#nextOf(projectId, backlogs, max, skipped);
      if (isFresh(backlogs.lagMs, largestLagMs) && fresh.length < freshMax) fresh.push(...list.splice(0, 1));
      return list;
    });
    return { backlogs: [...fresh, ...roundRobin(lists, max - fresh.length)], fresh: fresh.length };
  }

  /**
   * The backlogs of a project that may start an attempt: the backlog with the fewest attempts in flight is first; equal
   * ones are in order of position. Round-robin alone would give an endpoint that responds at once only one slot a round,
   * as many as an endpoint that keeps its slot until a timeout.
   */
  #nextOf(
    projectId: ProjectId,
    { healthy, unknown }: ProjectBacklogs,
    max: number,
    skipped: ReadonlySet<BacklogKey>,
  ): BacklogKey[] {
    const capacity = this.#inFlight.capacityOfProject(projectId);
    const candidates = [
      ...this.#leastBusy(healthy, Math.min(max, capacity.all), skipped),
      ...this.#leastBusy(unknown, Math.min(max, capacity.unknown), skipped),
    ];
    return candidates
      .toSorted(leastBusyFirst)
      .slice(0, Math.min(max, capacity.all))
      .map(({ backlog }) => backlog);
  }

  #leastBusy(backlogs: Map<BacklogKey, number>, max: number, skipped: ReadonlySet<BacklogKey>): BacklogCandidate[] {
    if (max === 0) return [];
    const candidates: BacklogCandidate[] = [];
    const blocked: [BacklogKey, number][] = [];
    let idle = 0;
    for (const [backlog, position] of backlogs) {
      const count = this.#inFlight.countOf(backlog);
      if (skipped.has(backlog) || this.#inFlight.capacityOf(backlog) === 0) blocked.push([backlog, position]);
      else {
        candidates.push({ backlog, position, count });
        if (count === 0) idle += 1;
      }
      if (idle === max) break;
      if (candidates.length - idle + blocked.length < EXAMINED_MAX) continue;
      this.#isTruncated ||= candidates.length < max && backlogs.size > EXAMINED_MAX;
      for (const [each, itsPosition] of blocked) {
        backlogs.delete(each);
        backlogs.set(each, itsPosition);
      }
      break;
    }
    return candidates.toSorted(leastBusyFirst).slice(0, max);
  }

  /**
   * Puts the backlog at the end. An unknown backlog is left out of memory while its project has unread backlogs, which
   * come first.
   */
  #putLast(backlog: BacklogKey): void {
    const { projectId } = parseBacklogKey(backlog);
    const unread = this.#unread.get(projectId);
    const isLeftOut = unread?.isBeingRead === false || this.#unknownCountOf(projectId) >= this.#backlogsMax;
    if (this.#inFlight.isHealthy(backlog) || !isLeftOut) return this.#put(backlog, this.#nextPosition());
    this.delete(backlog);
    if (unread) unread.mustRestart = true;
    else this.#unread.set(projectId, { after: backlogKey(projectId, ''), mustRestart: false, isBeingRead: false });
  }

  get #batchSize(): number {
    return Math.min(BACKLOGS_READ, Math.ceil(this.#backlogsMax / 2));
  }

  /**
   * The number of unknown backlogs of the project in memory, minus the attempts of the project in flight, since a backlog
   * without capacity has at least one attempt. Without the subtraction, the backlogs of hanging endpoints would fill the
   * memory, and all other backlogs would stay unread until one of these attempts ends.
   */
  #unknownCountOf(projectId: ProjectId): number {
    const count = this.#byProject.get(projectId)?.unknown.size ?? 0;
    return Math.max(0, count - this.#inFlight.countOfProject(projectId));
  }

  #put(backlog: BacklogKey, position: number): void {
    const { projectId } = parseBacklogKey(backlog);
    const backlogs = this.#byProject.get(projectId) ?? { lagMs: 0, healthy: new Map(), unknown: new Map() };
    this.#byProject.set(projectId, backlogs);
    backlogs.healthy.delete(backlog);
    backlogs.unknown.delete(backlog);
    backlogs[this.#inFlight.isHealthy(backlog) ? 'healthy' : 'unknown'].set(backlog, position);
  }

  #positionOf(backlog: BacklogKey): number | undefined {
    const backlogs = this.#byProject.get(parseBacklogKey(backlog).projectId);
    return backlogs?.healthy.get(backlog) ?? backlogs?.unknown.get(backlog);
  }

  #nextPosition(): number {
    this.#lastPosition += 1;
    return this.#lastPosition;
  }
}

function leastBusyFirst(a: BacklogCandidate, b: BacklogCandidate): number {
  return a.count - b.count || a.position - b.position;
}

/** Returns the first entry of each list, then the second entry of each list, and so on, up to `max` entries. */
function roundRobin<T>(lists: readonly T[][], max: number): T[] {
  const merged: T[] = [];
  const longest = Math.max(0, ...lists.map((list) => list.length));
  for (let position = 0; position < longest && merged.length < max; position += 1) {
    for (const list of lists) merged.push(...list.slice(position, position + 1));
  }
  return merged.slice(0, max);
}
