/**
 * Which lines have messages, and which are next? Kept by project, proven lines apart from the others. So lines that may
 * not start cost no steps, even ten thousand of a project that has its share (P9). Of a project with very many lines only
 * some of those that are not proven are in memory (P10): the end of the row is in the store, and is read when it comes near.
 */
import type { Millis, ProjectId } from '../model.ts';
import type { InFlight } from './in-flight.ts';
import { isFresh } from './lag.ts';
import { LinesLeft } from './lines-left.ts';
import { type OriginLine, readLine } from './origin-line.ts';
import { LINES_READ } from './read-lines.ts';

/** Lines of a project that are in memory at most, the proven ones not counted: about a megabyte. */
const LINES_MAX = 10_000;
/**
 * Lines with attempts that one call of `next` looks at: thousands may have silent ones. Those that may start none are looked at
 * last by the next call.
 */
const EXAMINED_MAX = 500;
/** Projects that may go first at a time. */
const FRESH_MAX = 4;

/** The lines of a project, each with the number of its turn: the lowest is next. */
interface LinesOfProject {
  /** How far behind it is: so long the message that was claimed last had waited. */
  lagMs: Millis;
  proven: Map<OriginLine, number>;
  unproven: Map<OriginLine, number>;
}

/** Those to serve now. The first `fresh` of them are of projects that are not far behind. */
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

interface Waiting {
  line: OriginLine;
  turn: number;
  /** Attempts in flight. */
  count: number;
}

export class WaitingLines {
  readonly #inFlight: InFlight;
  readonly #byProject = new Map<ProjectId, LinesOfProject>();
  readonly #left = new LinesLeft();
  readonly #linesMax: number;
  #turns = 0;
  #isTurnOfFresh = false;
  #isCut = false;

  constructor(inFlight: InFlight, linesMax = LINES_MAX) {
    this.#inFlight = inFlight;
    this.#linesMax = linesMax;
  }

  get isEmpty(): boolean {
    return this.#byProject.size === 0 && this.#left.isEmpty;
  }

  /** Whether the latest call of `next` has not looked at all lines, though it found fewer than may start. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** Whether messages may wait in the line. One that is proven is never only in the store. */
  has(line: OriginLine): boolean {
    const { projectId } = readLine(line);
    return (
      this.#turnOf(line) !== undefined || (this.#left.find(projectId) !== undefined && !this.#inFlight.isProven(line))
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
    const { projectId } = readLine(line);
    if (this.#turnOf(line) !== undefined) return;
    if (this.#endsInStore(line, projectId)) this.#left.note(projectId);
    else this.#put(line, this.#nextTurn());
  }

  /**
   * What to read, if a project has lines that are only in the store. They are read from when half of those in memory are gone until
   * as many are there as may be: so each piece brings many, however few are only in the store.
   */
  toRead(): LinesToRead | undefined {
    for (const [projectId, place] of this.#left.all) {
      place.isBeingRead ||= this.#unprovenOf(projectId) < this.#linesMax / 2;
      if (place.isBeingRead) return { projectId, after: place.after, limit: this.#readMax };
    }
    return undefined;
  }

  /** `lines` is what there was to read, perhaps with lines of later projects. */
  noteRead({ projectId, limit }: LinesToRead, lines: readonly OriginLine[]): void {
    const own = lines.filter((line) => readLine(line).projectId === projectId);
    for (const line of own) if (this.#turnOf(line) === undefined) this.#put(line, this.#nextTurn());
    const isFull = this.#unprovenOf(projectId) + this.#readMax > this.#linesMax;
    this.#left.noteRead(projectId, own.length === limit ? own.at(-1) : undefined, isFull);
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
   * The line has become proven, or is so no more. It keeps its turn, and its project does, also when it has no other. One that is
   * proven may have messages in the store.
   */
  reclassify(line: OriginLine): void {
    const turn = this.#turnOf(line);
    if (turn !== undefined) this.#put(line, turn);
    else if (this.#inFlight.isProven(line) && this.#left.find(readLine(line).projectId)) this.add(line);
  }

  /** The line was served and still has messages: it is last now, and so is its project, so that all get their turn. */
  moveToEnd(line: OriginLine): void {
    const { projectId } = readLine(line);
    const lines = this.#byProject.get(projectId);
    this.#byProject.delete(projectId);
    if (lines) this.#byProject.set(projectId, lines);
    if (!this.#endsInStore(line, projectId)) return this.#put(line, this.#nextTurn());
    this.delete(line);
    this.#left.note(projectId);
  }

  /** A message of the project was claimed that had waited for `lagMs`. */
  noteLag(projectId: ProjectId, lagMs: Millis): void {
    const lines = this.#byProject.get(projectId);
    if (lines) lines.lagMs = lagMs;
  }

  /**
   * Up to `max` lines that may start an attempt, without those of `skipped`. Every other time a line of each project comes first that is
   * not far behind. Projects take turns, those with the fewest slots first, and of these the one that was served
   * first. Costs about as many steps as there are attempts in flight and projects with lines, however many lines there are.
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
   * The lines with the fewest attempts in flight, and of these the ones that have waited longest; no more than may
   * start. By turns alone an endpoint that answers at once would get one slot a round, like one that keeps its slot
   * until a timeout.
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
      .toSorted(byTurn)
      .slice(0, Math.min(max, rooms.all))
      .map(({ line }) => line);
  }

  #leastBusy(lines: Map<OriginLine, number>, max: number, skipped: ReadonlySet<OriginLine>): Waiting[] {
    if (max === 0) return [];
    const found: Waiting[] = [];
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
      for (const [each, itsTurn] of held) moveToEnd(lines, each, itsTurn);
      break;
    }
    return found.toSorted(byTurn).slice(0, max);
  }

  /** Whether the end of the row, where the line belongs, is in the store. */
  #endsInStore(line: OriginLine, projectId: ProjectId): boolean {
    if (this.#inFlight.isProven(line)) return false;
    return this.#left.find(projectId)?.isBeingRead === false || this.#unprovenOf(projectId) >= this.#linesMax;
  }

  get #readMax(): number {
    return Math.min(LINES_READ, Math.ceil(this.#linesMax / 2));
  }

  #unprovenOf(projectId: ProjectId): number {
    return this.#byProject.get(projectId)?.unproven.size ?? 0;
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

function moveToEnd(lines: Map<OriginLine, number>, line: OriginLine, turn: number): void {
  lines.delete(line);
  lines.set(line, turn);
}

function byTurn(a: Waiting, b: Waiting): number {
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
