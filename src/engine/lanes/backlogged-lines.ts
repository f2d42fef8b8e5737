/**
 * Which lines have a backlog (messages that wait in them), and whose turn is next? This is a copy of what the index of waiting
 * messages says, since only memory knows which lines have room: a claim that had to ask the database would pass ten thousand lines
 * without room to find one with room, and a new message could not be placed without asking.
 *
 * The contract: a line with a backlog is in memory, or it is unproven and its project is noted in `#unread`. A line in memory may
 * have no backlog: a claim finds it empty and deletes it. Proven lines are kept apart from the others, so that lines which may not
 * start cost no steps (P9). Of a project with very many unproven lines only `LINES_MAX` are in memory (P10).
 */
import type { Store } from '../../store/store.ts';
import type { Millis, ProjectId } from '../model.ts';
import type { InFlight } from './in-flight.ts';
import { isFresh } from './lag.ts';
import { lineOf, type OriginLine, readLine } from './origin-line.ts';

/** Unproven lines of one project in memory: about a megabyte. */
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

/** The lines of a project, each with the number of its turn: the lowest is next. */
interface LinesOfProject {
  /** How long the message that was claimed last had waited. */
  lagMs: Millis;
  proven: Map<OriginLine, number>;
  unproven: Map<OriginLine, number>;
}

/**
 * Of a project, some unproven lines are only in the store. They are read from the first to the last, and then again if a line was
 * left out meanwhile. So each line that was left out is read later, unless it is empty by then.
 */
interface Unread {
  /** The last line that was read; at first the position before all lines. */
  after: OriginLine;
  /** A line was left out since the first line was read: its position may be before `after`. */
  isAnew: boolean;
  /** Pieces are read until memory is full. */
  isBeingRead: boolean;
}

/** The lines to serve now. The first `fresh` of them are of projects that are not far behind. */
export interface NextLines {
  lines: OriginLine[];
  fresh: number;
}

/** Lines of a project to be read: the first `limit` after `after`. */
export interface LinesToRead {
  projectId: ProjectId;
  after: OriginLine;
  limit: number;
}

export const NO_LINES: NextLines = { lines: [], fresh: 0 };

interface Candidate {
  line: OriginLine;
  turn: number;
  /** Attempts in flight. */
  count: number;
}

/** All lines with a backlog, piece by piece; no piece is larger than `LINES_READ`. Throws `StoreUnavailable`. */
export async function* readLines(messages: Pick<Store['messages'], 'waitingLines'>): AsyncGenerator<OriginLine[]> {
  let lines: OriginLine[] = [];
  do {
    lines = await messages.waitingLines({ after: lines.at(-1), limit: LINES_READ });
    yield lines;
  } while (lines.length === LINES_READ);
}

export class BackloggedLines {
  readonly #inFlight: InFlight;
  readonly #byProject = new Map<ProjectId, LinesOfProject>();
  readonly #unread = new Map<ProjectId, Unread>();
  readonly #linesMax: number;
  #turns = 0;
  #isTurnOfFresh = false;
  #isCut = false;

  constructor(inFlight: InFlight, linesMax = LINES_MAX) {
    this.#inFlight = inFlight;
    this.#linesMax = linesMax;
  }

  get isEmpty(): boolean {
    return this.#byProject.size === 0 && this.#unread.size === 0;
  }

  /** Whether the latest call of `next` returned fewer lines than may start, since it did not examine all. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** Whether messages may wait in the line. */
  has(line: OriginLine): boolean {
    return (
      this.#turnOf(line) !== undefined || (this.#unread.has(readLine(line).projectId) && !this.#inFlight.isProven(line))
    );
  }

  /** Up to `max` of them, in no order. */
  some(max: number): OriginLine[] {
    const found: OriginLine[] = [];
    for (const { proven, unproven } of this.#byProject.values()) {
      for (const lines of [proven, unproven]) {
        for (const line of lines.keys()) {
          if (found.length === max) return found;
          found.push(line);
        }
      }
    }
    return found;
  }

  /** Adds the line with the last turn, unless it is there already. */
  add(line: OriginLine): void {
    if (this.#turnOf(line) === undefined) this.#putLast(line);
  }

  /**
   * What to read, if a project has lines that are only in the store. Reading starts when memory has less than half of what it may
   * have, and continues until it is full: so each piece brings many lines, however few are only in the store.
   */
  toRead(): LinesToRead | undefined {
    for (const [projectId, unread] of this.#unread) {
      unread.isBeingRead ||= this.#unprovenOf(projectId) < this.#linesMax / 2;
      if (unread.isBeingRead) return { projectId, after: unread.after, limit: this.#readMax };
    }
    return undefined;
  }

  /** `lines` is what there was to read, perhaps with lines of later projects. */
  noteRead({ projectId, limit }: LinesToRead, lines: readonly OriginLine[]): void {
    const own = lines.filter((line) => readLine(line).projectId === projectId);
    for (const line of own) if (this.#turnOf(line) === undefined) this.#put(line, this.#nextTurn());
    const unread = this.#unread.get(projectId);
    if (!unread) return;
    const last = own.length === limit ? own.at(-1) : undefined;
    if (last === undefined && !unread.isAnew) this.#unread.delete(projectId);
    else if (last === undefined) Object.assign(unread, { after: lineOf(projectId, ''), isAnew: false });
    else unread.after = last;
    unread.isBeingRead = this.#unprovenOf(projectId) + this.#readMax <= this.#linesMax;
  }

  delete(line: OriginLine): void {
    const { projectId } = readLine(line);
    const lines = this.#byProject.get(projectId);
    if (!lines) return;
    lines.proven.delete(line);
    lines.unproven.delete(line);
    if (lines.proven.size + lines.unproven.size === 0) this.#byProject.delete(projectId);
  }

  /**
   * The line has become proven or unproven. It keeps its turn, and its project does, even if the project has no other line. A line
   * that has become proven may have messages in the store.
   */
  reclassify(line: OriginLine): void {
    const turn = this.#turnOf(line);
    if (turn !== undefined) this.#put(line, turn);
    else if (this.#inFlight.isProven(line) && this.#unread.has(readLine(line).projectId)) this.add(line);
  }

  /** The line was served and still has messages: it and its project get the last turn. */
  moveToEnd(line: OriginLine): void {
    const { projectId } = readLine(line);
    const lines = this.#byProject.get(projectId);
    this.#byProject.delete(projectId);
    if (lines) this.#byProject.set(projectId, lines);
    this.#putLast(line);
  }

  /** A message of the project was claimed that had waited for `lagMs`. */
  noteLag(projectId: ProjectId, lagMs: Millis): void {
    const lines = this.#byProject.get(projectId);
    if (lines) lines.lagMs = lagMs;
  }

  /**
   * Up to `max` lines that may start an attempt, without those of `skipped`. Projects take turns: those with the fewest slots first,
   * and of these the one that was served first. Every other time, one line of each project that is not far behind comes before all
   * others. Takes about as many steps as there are attempts in flight and projects with lines, however many lines there are.
   */
  next(max: number, skipped: ReadonlySet<OriginLine>): NextLines {
    this.#isCut = false;
    const projects = [...this.#byProject].filter(([projectId]) => this.#inFlight.roomsOfProject(projectId).all > 0);
    projects.sort(([a], [b]) => this.#inFlight.slotsOfProject(a) - this.#inFlight.slotsOfProject(b));
    this.#isTurnOfFresh = !this.#isTurnOfFresh;
    const freshMax = this.#isTurnOfFresh ? FRESH_MAX : 0;
    const farthestMs = Math.max(...projects.map(([, { lagMs }]) => lagMs));
    const fresh: OriginLine[] = [];
    const lists = projects.slice(0, max).map(([projectId, lines]) => {
      const list = this.#nextOf(projectId, lines, max, skipped);
      if (isFresh(lines.lagMs, farthestMs) && fresh.length < freshMax) fresh.push(...list.splice(0, 1));
      return list;
    });
    return { lines: [...fresh, ...byTurns(lists, max - fresh.length)], fresh: fresh.length };
  }

  /**
   * The lines with the fewest attempts in flight, and of these the ones that have waited longest; no more than may start. By turns
   * alone, an endpoint that answers at once would get one slot a round, like one that keeps its slot until a timeout.
   */
  #nextOf(
    projectId: ProjectId,
    { proven, unproven }: LinesOfProject,
    max: number,
    skipped: ReadonlySet<OriginLine>,
  ): OriginLine[] {
    const rooms = this.#inFlight.roomsOfProject(projectId);
    const found = [
      ...this.#leastBusy(proven, Math.min(max, rooms.all), skipped),
      ...this.#leastBusy(unproven, Math.min(max, rooms.unproven), skipped),
    ];
    return found
      .toSorted(leastBusyFirst)
      .slice(0, Math.min(max, rooms.all))
      .map(({ line }) => line);
  }

  #leastBusy(lines: Map<OriginLine, number>, max: number, skipped: ReadonlySet<OriginLine>): Candidate[] {
    if (max === 0) return [];
    const found: Candidate[] = [];
    const held: [OriginLine, number][] = [];
    let idle = 0;
    for (const [line, turn] of lines) {
      const count = this.#inFlight.countOf(line);
      if (skipped.has(line) || this.#inFlight.roomOf(line) === 0) held.push([line, turn]);
      else {
        found.push({ line, turn, count });
        if (count === 0) idle += 1;
      }
      if (idle === max) break;
      if (found.length - idle + held.length < EXAMINED_MAX) continue;
      this.#isCut ||= found.length < max && lines.size > EXAMINED_MAX;
      for (const [each, itsTurn] of held) {
        lines.delete(each);
        lines.set(each, itsTurn);
      }
      break;
    }
    return found.toSorted(leastBusyFirst).slice(0, max);
  }

  /** Gives the line the last turn. Unread lines come before it: of a project with unread lines, an unproven one is left out. */
  #putLast(line: OriginLine): void {
    const { projectId } = readLine(line);
    const unread = this.#unread.get(projectId);
    const isLeftOut = unread?.isBeingRead === false || this.#unprovenOf(projectId) >= this.#linesMax;
    if (this.#inFlight.isProven(line) || !isLeftOut) return this.#put(line, this.#nextTurn());
    this.delete(line);
    if (unread) unread.isAnew = true;
    else this.#unread.set(projectId, { after: lineOf(projectId, ''), isAnew: false, isBeingRead: false });
  }

  get #readMax(): number {
    return Math.min(LINES_READ, Math.ceil(this.#linesMax / 2));
  }

  /**
   * Minus the attempts of the project: a line that may start no attempt has one in flight. Otherwise, lines of endpoints that hang
   * would fill the memory, and the other lines would stay unread until one of these attempts ends.
   */
  #unprovenOf(projectId: ProjectId): number {
    const count = this.#byProject.get(projectId)?.unproven.size ?? 0;
    return Math.max(0, count - this.#inFlight.countOfProject(projectId));
  }

  #put(line: OriginLine, turn: number): void {
    const { projectId } = readLine(line);
    const lines = this.#byProject.get(projectId) ?? { lagMs: 0, proven: new Map(), unproven: new Map() };
    this.#byProject.set(projectId, lines);
    lines.proven.delete(line);
    lines.unproven.delete(line);
    lines[this.#inFlight.isProven(line) ? 'proven' : 'unproven'].set(line, turn);
  }

  #turnOf(line: OriginLine): number | undefined {
    const lines = this.#byProject.get(readLine(line).projectId);
    return lines?.proven.get(line) ?? lines?.unproven.get(line);
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
