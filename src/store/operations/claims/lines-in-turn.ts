/** Serves lines with a backlog in turn. */

import type { ClaimRequest } from '../../../engine/dispatch/claims.ts';
import { type OriginLine, readLine } from '../../../engine/lanes/origin-line.ts';
import { flowRefsOf } from '../lanes/flow-lanes.ts';
import { LINE, NOT_ENDING } from '../lanes/lines.ts';
import { CANDIDATE_FIELDS, type Candidate, type Round } from './claim-round.ts';

/** A line gets at most a quarter of the slots that are left while other lines wait for them, and may always have `min`. */
const SHARE = { lines: 4, min: 8 };

/** The first messages of a line: one more than `room`, which shows whether any are left. */
interface FirstOfLine {
  line: OriginLine;
  room: number;
  candidates: Candidate[];
}

/** Lines take messages in turn, each up to its room and to its share of what the claim takes. */
export class LinesInTurn {
  /** Lines without a backlog by now, and lines of projects that are moving: these are found again once their project is here. */
  readonly emptied: OriginLine[];
  readonly #round: Round;
  readonly #lines: readonly OriginLine[];
  readonly #fresh: number;
  #served = 0;
  /** Messages read so far. */
  #read = 0;

  constructor(round: Round, { linesToServe, freshLines = 0 }: Pick<ClaimRequest, 'linesToServe' | 'freshLines'>) {
    this.#round = round;
    const isHere = (line: OriginLine) => !round.moving.has(readLine(line).projectId);
    this.emptied = linesToServe.filter((line) => !isHere(line));
    this.#lines = linesToServe.filter(isHere);
    this.#fresh = linesToServe.slice(0, freshLines).filter(isHere).length;
  }

  /** How many messages the lines may take together, if they have them. */
  get room(): number {
    return this.#lines.reduce((sum, line) => sum + this.#round.roomOf(line), 0);
  }

  /** Serves lines that have not had a turn, until the claim has `count` messages or is full. */
  async serve(count = Infinity): Promise<void> {
    const round = this.#round;
    round.limitTo(count);
    while (!round.isFull && this.#served < this.#lines.length) {
      const firsts = await this.#readFirst(this.#nextFor());
      const candidates = firsts.flatMap((first) => first.candidates);
      this.#read += candidates.length;
      await round.flows.load(flowRefsOf(candidates));
      await round.load(candidates);
      for (const first of firsts) {
        if (round.isFull) break;
        if (this.#serveOne(first)) this.emptied.push(first.line);
        this.#served += 1;
      }
    }
    round.limitTo(Infinity);
  }

  /**
   * As many of the next lines as may fill the claim, if each has as many messages as it may take, or as the lines before had on
   * average. They are read at once, since each read is a round trip: lines with one message each are read many at a time.
   */
  #nextFor(): Pick<FirstOfLine, 'line' | 'room'>[] {
    const next: Pick<FirstOfLine, 'line' | 'room'>[] = [];
    const expected = this.#served === 0 ? Infinity : this.#read / this.#served;
    let slots = this.#round.messagesLeft;
    const lines = this.#lines.slice(this.#served);
    for (const [index, line] of lines.entries()) {
      if (slots <= 0) break;
      const fresh = this.#fresh - this.#served - index;
      const share = Math.max(
        SHARE.min,
        Math.ceil(slots / Math.min(fresh > 0 ? fresh : SHARE.lines, lines.length - index)),
      );
      const room = Math.min(this.#round.roomOf(line), share);
      next.push({ line, room });
      slots -= Math.min(room, expected);
    }
    return next;
  }

  async #readFirst(lines: readonly Pick<FirstOfLine, 'line' | 'room'>[]): Promise<FirstOfLine[]> {
    // No check of the due time: they were due when they came here, and a clock set back since must not block them.
    const candidates = await this.#round.tx.queryEach<Candidate>(
      `select ${CANDIDATE_FIELDS} from messages
       where project_id = ? and origin = ? and claim_token is null and line = ${LINE.origin} and ${NOT_ENDING}
       order by due_at_ms, key limit ? for update skip locked`,
      lines.map(({ line, room }) => [readLine(line).projectId, readLine(line).origin, room + 1]),
    );
    return lines.map((each, index) => ({ ...each, candidates: candidates[index] ?? [] }));
  }

  /** Takes as many messages as the line has room for by now. True when none is left in the line. */
  #serveOne({ line, room: asked, candidates }: FirstOfLine): boolean {
    const round = this.#round;
    const room = Math.min(asked, round.roomOf(line));
    const takenBefore = round.taken.length;
    for (const candidate of candidates) {
      if (round.taken.length - takenBefore === room || !round.mayTouch(candidate)) return false;
      if (!round.takeOrSendBack(candidate)) return false;
    }
    if (candidates.length > asked) return false;
    round.noteEmptied(line);
    return true;
  }
}
