/** Serves endpoint backlogs round-robin. */

import type { ClaimRequest } from '../../../engine/dispatch/claims.ts';
import { type BacklogKey, parseBacklogKey } from '../../../engine/lanes/backlog-key.ts';
import { flowRefsOf } from '../lanes/flow-lanes.ts';
import { NOT_ENDING, WAIT_STATE } from '../lanes/wait-states.ts';
import { CANDIDATE_FIELDS, type Candidate, type ClaimRound } from './claim-round.ts';

/** While other backlogs wait, a backlog gets at most a quarter of the remaining slots, or `min` slots if that is more. */
const SHARE = { backlogs: 4, min: 8 };

/** The first messages of a backlog, one more than `capacity`: the extra one shows whether more messages are left. */
interface FirstOfBacklog {
  backlog: BacklogKey;
  capacity: number;
  candidates: Candidate[];
}

/** Takes messages from the backlogs in rotation. Each backlog gives at most its capacity and its share of the slots. */
export class BacklogRotation {
  /** Backlogs that are now empty, and backlogs of projects that are being moved, which are found again after the move. */
  readonly emptied: BacklogKey[];
  readonly #round: ClaimRound;
  readonly #backlogs: readonly BacklogKey[];
  readonly #fresh: number;
  #served = 0;
  /** Messages read so far. */
  #read = 0;

  constructor(
    round: ClaimRound,
    { backlogsToServe, freshBacklogs = 0 }: Pick<ClaimRequest, 'backlogsToServe' | 'freshBacklogs'>,
  ) {
    this.#round = round;
    const isHere = (backlog: BacklogKey) => !round.moving.has(parseBacklogKey(backlog).projectId);
    this.emptied = backlogsToServe.filter((backlog) => !isHere(backlog));
    this.#backlogs = backlogsToServe.filter(isHere);
    this.#fresh = backlogsToServe.slice(0, freshBacklogs).filter(isHere).length;
  }

  /** How many messages may be taken from all backlogs together, provided that each backlog has enough messages. */
  get capacity(): number {
    return this.#backlogs.reduce((sum, backlog) => sum + this.#round.capacityOf(backlog), 0);
  }

  /** Serves the remaining backlogs until the claim has `count` messages or is full. */
  async serve(count = Infinity): Promise<void> {
    const round = this.#round;
    round.limitTo(count);
    while (!round.isFull && this.#served < this.#backlogs.length) {
      const firsts = await this.#readFirst(this.#nextFor());
      const candidates = firsts.flatMap((first) => first.candidates);
      this.#read += candidates.length;
      await round.flows.load(flowRefsOf(candidates));
      await round.load(candidates);
      for (const first of firsts) {
        if (round.isFull) break;
        if (this.#serveOne(first)) this.emptied.push(first.backlog);
        this.#served += 1;
      }
    }
    round.limitTo(Infinity);
  }

  /**
   * As many of the next backlogs as fill the claim, if each gives as many messages as its capacity, or as the backlogs
   * read before gave on average. The backlogs are read together, because each read is a round trip: many short backlogs
   * cost one read.
   */
  #nextFor(): Pick<FirstOfBacklog, 'backlog' | 'capacity'>[] {
    const next: Pick<FirstOfBacklog, 'backlog' | 'capacity'>[] = [];
    const expected = this.#served === 0 ? Infinity : this.#read / this.#served;
    let slots = this.#round.messagesLeft;
    const backlogs = this.#backlogs.slice(this.#served);
    for (const [index, backlog] of backlogs.entries()) {
      if (slots <= 0) break;
      const fresh = this.#fresh - this.#served - index;
      const share = Math.max(
        SHARE.min,
        Math.ceil(slots / Math.min(fresh > 0 ? fresh : SHARE.backlogs, backlogs.length - index)),
      );
      const capacity = Math.min(this.#round.capacityOf(backlog), share);
      next.push({ backlog, capacity });
      slots -= Math.min(capacity, expected);
    }
    return next;
  }

  async #readFirst(backlogs: readonly Pick<FirstOfBacklog, 'backlog' | 'capacity'>[]): Promise<FirstOfBacklog[]> {
    // The due time is not checked: these messages were due when they moved to the backlog, and a clock that was set back
    // since must not block them.
    const candidates = await this.#round.tx.queryEach<Candidate>(
      `select ${CANDIDATE_FIELDS} from messages
       where project_id = ? and origin = ? and claim_token is null and wait_state = ${WAIT_STATE.origin} and ${NOT_ENDING}
       order by due_at_ms, key limit ? for update skip locked`,
      backlogs.map(({ backlog, capacity }) => [
        parseBacklogKey(backlog).projectId,
        parseBacklogKey(backlog).origin,
        capacity + 1,
      ]),
    );
    return backlogs.map((each, index) => ({ ...each, candidates: candidates[index] ?? [] }));
  }

  /** Takes as many messages as the capacity of the backlog still allows. True when the backlog is now empty. */
  #serveOne({ backlog, capacity: planned, candidates }: FirstOfBacklog): boolean {
    const round = this.#round;
    const capacity = Math.min(planned, round.capacityOf(backlog));
    const takenBefore = round.taken.length;
    for (const candidate of candidates) {
      if (round.taken.length - takenBefore === capacity || !round.mayTouch(candidate)) return false;
      if (!round.takeOrSendBack(candidate)) return false;
    }
    if (candidates.length > planned) return false;
    round.noteEmptied(backlog);
    return true;
  }
}
