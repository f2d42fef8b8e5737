/**
 * Which backlogs have a backlog (messages that wait in them), and whose turn is next? This is a copy of what the index of waiting
 * messages says, since only memory knows which backlogs have room: a claim that had to ask the database would pass ten thousand backlogs
 * without room to find one with room, and a new message could not be placed without asking.
 *
 * The contract: a backlog with a backlog is in memory, or it is unproven and its project is noted in `#unread`. A backlog in memory may
 * have no backlog: a claim finds it empty and deletes it. Proven backlogs are kept apart from the others, so that backlogs which may not
 * start cost no steps (P9). Of a project with very many unproven backlogs only `LINES_MAX` are in memory (P10).
 */
import type { Store } from '../../store/store.ts';
import type { Millis, ProjectId } from '../model.ts';
import { type BacklogKey, backlogKey, parseBacklogKey } from './backlog-key.ts';
import type { InFlight } from './in-flight.ts';
import { isFresh } from './lag.ts';

/** Unproven backlogs of one project in memory: about a megabyte. */
const LINES_MAX = 10_000;
/** Lines read at a time: a few milliseconds of the store's work. */
export const LINES_READ = 2_000;
/**
 * Lines with attempts that one call of `next` examines: thousands may have silent ones. The next call examines those last that may
 * start none.
 */
const EXAMINED_MAX = 500;
/** Projects that may go first at a time. */
const FRESH_MAX = 4;

/** The backlogs of a project, each with the number of its turn: the lowest is next. */
interface LinesOfProject {
  /** How long the message that was claimed last had waited. */
  lagMs: Millis;
  proven: Map<BacklogKey, number>;
  unproven: Map<BacklogKey, number>;
}

/**
 * Of a project, some unproven backlogs are only in the store. They are read from the first to the last, and then again if a backlog was
 * left out meanwhile. So each backlog that was left out is read later, unless it is empty by then.
 */
interface Unread {
  /** The last backlog that was read; at first the position before all backlogs. */
  after: BacklogKey;
  /** A backlog was left out since the first backlog was read: its position may be before `after`. */
  isAnew: boolean;
  /** Pieces are read until memory is full. */
  isBeingRead: boolean;
}

/** The backlogs to serve now. The first `fresh` of them are of projects that are not far behind. */
export interface NextBacklogs {
  backlogs: BacklogKey[];
  fresh: number;
}

/** Lines of a project to be read: the first `limit` after `after`. */
export interface BacklogsToRead {
  projectId: ProjectId;
  after: BacklogKey;
  limit: number;
}

export const NO_LINES: NextBacklogs = { backlogs: [], fresh: 0 };

interface Candidate {
  backlog: BacklogKey;
  turn: number;
  /** Attempts in flight. */
  count: number;
}

/** All backlogs with a backlog, piece by piece; no piece is larger than `LINES_READ`. Throws `StoreUnavailable`. */
export async function* readBacklogs(
  messages: Pick<Store['messages'], 'waitingBacklogs'>,
): AsyncGenerator<BacklogKey[]> {
  let backlogs: BacklogKey[] = [];
  do {
    backlogs = await messages.waitingBacklogs({ after: backlogs.at(-1), limit: LINES_READ });
    yield backlogs;
  } while (backlogs.length === LINES_READ);
}

export class Backlogs {
  readonly #inFlight: InFlight;
  readonly #byProject = new Map<ProjectId, LinesOfProject>();
  readonly #unread = new Map<ProjectId, Unread>();
  readonly #backlogsMax: number;
  #turns = 0;
  #isTurnOfFresh = false;
  #isCut = false;

  constructor(inFlight: InFlight, backlogsMax = LINES_MAX) {
    this.#inFlight = inFlight;
    this.#backlogsMax = backlogsMax;
  }

  get isEmpty(): boolean {
    return this.#byProject.size === 0 && this.#unread.size === 0;
  }

  /** Whether the latest call of `next` returned fewer backlogs than may start, since it did not examine all. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** Whether messages may wait in the backlog. */
  has(backlog: BacklogKey): boolean {
    return (
      this.#turnOf(backlog) !== undefined ||
      (this.#unread.has(parseBacklogKey(backlog).projectId) && !this.#inFlight.isProven(backlog))
    );
  }

  /** Up to `max` of them, in no order. */
  some(max: number): BacklogKey[] {
    const found: BacklogKey[] = [];
    for (const { proven, unproven } of this.#byProject.values()) {
      for (const backlogs of [proven, unproven]) {
        for (const backlog of backlogs.keys()) {
          if (found.length === max) return found;
          found.push(backlog);
        }
      }
    }
    return found;
  }

  /** Adds the backlog with the last turn, unless it is there already. */
  add(backlog: BacklogKey): void {
    if (this.#turnOf(backlog) === undefined) this.#putLast(backlog);
  }

  /**
   * What to read, if a project has backlogs that are only in the store. Reading starts when memory has less than half of what it may
   * have, and continues until it is full: so each piece brings many backlogs, however few are only in the store.
   */
  toRead(): BacklogsToRead | undefined {
    for (const [projectId, unread] of this.#unread) {
      unread.isBeingRead ||= this.#unprovenOf(projectId) < this.#backlogsMax / 2;
      if (unread.isBeingRead) return { projectId, after: unread.after, limit: this.#readMax };
    }
    return undefined;
  }

  /** `backlogs` is what there was to read, perhaps with backlogs of later projects. */
  noteRead({ projectId, limit }: BacklogsToRead, backlogs: readonly BacklogKey[]): void {
    const own = backlogs.filter((backlog) => parseBacklogKey(backlog).projectId === projectId);
    for (const backlog of own) if (this.#turnOf(backlog) === undefined) this.#put(backlog, this.#nextTurn());
    const unread = this.#unread.get(projectId);
    if (!unread) return;
    const last = own.length === limit ? own.at(-1) : undefined;
    if (last === undefined && !unread.isAnew) this.#unread.delete(projectId);
    else if (last === undefined) Object.assign(unread, { after: backlogKey(projectId, ''), isAnew: false });
    else unread.after = last;
    unread.isBeingRead = this.#unprovenOf(projectId) + this.#readMax <= this.#backlogsMax;
  }

  delete(backlog: BacklogKey): void {
    const { projectId } = parseBacklogKey(backlog);
    const backlogs = this.#byProject.get(projectId);
    if (!backlogs) return;
    backlogs.proven.delete(backlog);
    backlogs.unproven.delete(backlog);
    if (backlogs.proven.size + backlogs.unproven.size === 0) this.#byProject.delete(projectId);
  }

  /**
   * The backlog has become proven or unproven. It keeps its turn, and its project does, even if the project has no other backlog. A backlog
   * that has become proven may have messages in the store.
   */
  reclassify(backlog: BacklogKey): void {
    const turn = this.#turnOf(backlog);
    if (turn !== undefined) this.#put(backlog, turn);
    else if (this.#inFlight.isProven(backlog) && this.#unread.has(parseBacklogKey(backlog).projectId))
      this.add(backlog);
  }

  /** The backlog was served and still has messages: it and its project get the last turn. */
  moveToEnd(backlog: BacklogKey): void {
    const { projectId } = parseBacklogKey(backlog);
    const backlogs = this.#byProject.get(projectId);
    this.#byProject.delete(projectId);
    if (backlogs) this.#byProject.set(projectId, backlogs);
    this.#putLast(backlog);
  }

  /** A message of the project was claimed that had waited for `lagMs`. */
  noteLag(projectId: ProjectId, lagMs: Millis): void {
    const backlogs = this.#byProject.get(projectId);
    if (backlogs) backlogs.lagMs = lagMs;
  }

  /**
   * Up to `max` backlogs that may start an attempt, without those of `skipped`. Projects take turns: those with the fewest slots first,
   * and of these the one that was served first. Every other time, one backlog of each project that is not far behind comes before all
   * others. Takes about as many steps as there are attempts in flight and projects with backlogs, however many backlogs there are.
   */
  next(max: number, skipped: ReadonlySet<BacklogKey>): NextBacklogs {
    this.#isCut = false;
    const projects = [...this.#byProject].filter(([projectId]) => this.#inFlight.roomsOfProject(projectId).all > 0);
    projects.sort(([a], [b]) => this.#inFlight.slotsOfProject(a) - this.#inFlight.slotsOfProject(b));
    this.#isTurnOfFresh = !this.#isTurnOfFresh;
    const freshMax = this.#isTurnOfFresh ? FRESH_MAX : 0;
    const farthestMs = Math.max(...projects.map(([, { lagMs }]) => lagMs));
    const fresh: BacklogKey[] = [];
    const lists = projects.slice(0, max).map(([projectId, backlogs]) => {
      const list = this.#nextOf(projectId, backlogs, max, skipped);
      if (isFresh(backlogs.lagMs, farthestMs) && fresh.length < freshMax) fresh.push(...list.splice(0, 1));
      return list;
    });
    return { backlogs: [...fresh, ...byTurns(lists, max - fresh.length)], fresh: fresh.length };
  }

  /**
   * The backlogs with the fewest attempts in flight, and of these the ones that have waited longest; no more than may start. By turns
   * alone, an endpoint that answers at once would get one slot a round, like one that keeps its slot until a timeout.
   */
  #nextOf(
    projectId: ProjectId,
    { proven, unproven }: LinesOfProject,
    max: number,
    skipped: ReadonlySet<BacklogKey>,
  ): BacklogKey[] {
    const rooms = this.#inFlight.roomsOfProject(projectId);
    const found = [
      ...this.#leastBusy(proven, Math.min(max, rooms.all), skipped),
      ...this.#leastBusy(unproven, Math.min(max, rooms.unproven), skipped),
    ];
    return found
      .toSorted(leastBusyFirst)
      .slice(0, Math.min(max, rooms.all))
      .map(({ backlog }) => backlog);
  }

  #leastBusy(backlogs: Map<BacklogKey, number>, max: number, skipped: ReadonlySet<BacklogKey>): Candidate[] {
    if (max === 0) return [];
    const found: Candidate[] = [];
    const held: [BacklogKey, number][] = [];
    let idle = 0;
    for (const [backlog, turn] of backlogs) {
      const count = this.#inFlight.countOf(backlog);
      if (skipped.has(backlog) || this.#inFlight.roomOf(backlog) === 0) held.push([backlog, turn]);
      else {
        found.push({ backlog, turn, count });
        if (count === 0) idle += 1;
      }
      if (idle === max) break;
      if (found.length - idle + held.length < EXAMINED_MAX) continue;
      this.#isCut ||= found.length < max && backlogs.size > EXAMINED_MAX;
      for (const [each, itsTurn] of held) {
        backlogs.delete(each);
        backlogs.set(each, itsTurn);
      }
      break;
    }
    return found.toSorted(leastBusyFirst).slice(0, max);
  }

  /** Gives the backlog the last turn. Unread backlogs come before it: of a project with unread backlogs, an unproven one is left out. */
  #putLast(backlog: BacklogKey): void {
    const { projectId } = parseBacklogKey(backlog);
    const unread = this.#unread.get(projectId);
    const isLeftOut = unread?.isBeingRead === false || this.#unprovenOf(projectId) >= this.#backlogsMax;
    if (this.#inFlight.isProven(backlog) || !isLeftOut) return this.#put(backlog, this.#nextTurn());
    this.delete(backlog);
    if (unread) unread.isAnew = true;
    else this.#unread.set(projectId, { after: backlogKey(projectId, ''), isAnew: false, isBeingRead: false });
  }

  get #readMax(): number {
    return Math.min(LINES_READ, Math.ceil(this.#backlogsMax / 2));
  }

  /**
   * Minus the attempts of the project: a backlog that may start no attempt has one in flight. Otherwise, backlogs of endpoints that hang
   * would fill the memory, and the other backlogs would stay unread until one of these attempts ends.
   */
  #unprovenOf(projectId: ProjectId): number {
    const count = this.#byProject.get(projectId)?.unproven.size ?? 0;
    return Math.max(0, count - this.#inFlight.countOfProject(projectId));
  }

  #put(backlog: BacklogKey, turn: number): void {
    const { projectId } = parseBacklogKey(backlog);
    const backlogs = this.#byProject.get(projectId) ?? { lagMs: 0, proven: new Map(), unproven: new Map() };
    this.#byProject.set(projectId, backlogs);
    backlogs.proven.delete(backlog);
    backlogs.unproven.delete(backlog);
    backlogs[this.#inFlight.isProven(backlog) ? 'proven' : 'unproven'].set(backlog, turn);
  }

  #turnOf(backlog: BacklogKey): number | undefined {
    const backlogs = this.#byProject.get(parseBacklogKey(backlog).projectId);
    return backlogs?.proven.get(backlog) ?? backlogs?.unproven.get(backlog);
  }

  #nextTurn(): number {
    this.#turns += 1;
    return this.#turns;
  }
}

function leastBusyFirst(a: Candidate, b: Candidate): number {
  return a.count - b.count || a.turn - b.turn;
}

/** The first of each list, then the second of each, and so on. */
function byTurns<T>(lists: readonly T[][], max: number): T[] {
  const taken: T[] = [];
  const longest = Math.max(0, ...lists.map((list) => list.length));
  for (let turn = 0; turn < longest && taken.length < max; turn += 1) {
    for (const list of lists) taken.push(...list.slice(turn, turn + 1));
  }
  return taken.slice(0, max);
}
