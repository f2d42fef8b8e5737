/**
 * Checks that lanes kept their limits and their order (P4, P5), as seen by the endpoints. An endpoint sees the start of
 * an attempt later than the server, and the end earlier. So an endpoint never sees more attempts at a time than there
 * were.
 */
import type { Arrival, Entrant, Lane, LaneEvent } from './ledger.ts';

export interface LaneVerdict {
  /** First attempts that came before the first attempts of earlier messages of the same queue. */
  outOfOrder: string[];
  /** Starts of a message in a queue, or of an attempt of a key, without a free permit. */
  overParallelism: string[];
  /** Starts of a key that no alignment of the periods allows. */
  overRate: string[];
  /** Attempts of a paused lane, or of a deleted queue, by a server that was started after the pause or the deletion. */
  notHeldBack: string[];
  /** By lane: the maximum of concurrent messages or attempts. A lane that was never near its limit proves little. */
  most: Record<string, number>;
}

export function judgeLanes(lanes: readonly Lane[], events: readonly LaneEvent[]): LaneVerdict {
  const entrants = entrantsOf(events);
  const verdict: LaneVerdict = { outOfOrder: [], overParallelism: [], overRate: [], notHeldBack: [], most: {} };
  for (const lane of lanes) {
    const isOf = isIn(lane, entrants);
    const arrivals = events.flatMap((event) => (event.kind === 'arrived' && isOf(event.attempt) ? [event] : []));
    const { parallelism, rate, periodMs } = lane;
    if (lane.kind === 'queue' && parallelism !== undefined) {
      const order = [...entrants.keys()];
      const tags = [...new Set(arrivals.map(({ attempt }) => attempt.tag))];
      verdict.outOfOrder.push(...overtakers(tags, order, parallelism).map((tag) => `${lane.name}: ${tag}`));
    }
    if (parallelism !== undefined) {
      verdict.most[lane.name] = countStarts(events, lane, entrants, (started, { messageId, retried }) => {
        if (started > parallelism) {
          verdict.overParallelism.push(`${lane.name}: ${messageId} retried ${retried} as number ${started}`);
        }
      });
    }
    if (rate !== undefined && periodMs !== undefined) {
      const excess = excessStarts(
        arrivals.map(({ atMs }) => atMs),
        rate,
        periodMs,
      );
      if (excess > 0) verdict.overRate.push(`${lane.name}: ${excess} starts too many`);
    }
    verdict.notHeldBack.push(...notHeldBack(events, lane, entrants));
  }
  return verdict;
}

/** Lanes with a parallelism that they have not reached so far. */
export function neverFull(lanes: readonly Lane[], events: readonly LaneEvent[]): readonly Lane[] {
  const entrants = entrantsOf(events);
  return lanes.filter(
    (lane) => lane.parallelism !== undefined && countStarts(events, lane, entrants, () => {}) < lane.parallelism,
  );
}

function entrantsOf(events: readonly LaneEvent[]): Map<string, Entrant> {
  return new Map(events.flatMap((event) => (event.kind === 'entered' ? [[event.entrant.tag, event.entrant]] : [])));
}

function isIn(lane: Lane, entrants: ReadonlyMap<string, Entrant>): (attempt: Arrival) => boolean {
  return ({ tag }) => entrants.get(tag)?.lanes.includes(lane) === true;
}

/**
 * The tags of messages that arrived before `parallelism` or more earlier messages. `tags` are in the order of their first
 * attempts. Up to `parallelism` messages start without waiting for each other, and may pass each other on their way to
 * the endpoint.
 */
function overtakers(tags: readonly string[], order: readonly string[], parallelism: number): string[] {
  const positions = new Map(order.map((tag, position) => [tag, position]));
  const sequence = tags.map((tag) => positions.get(tag) ?? -1);
  return tags.filter((_, at) => {
    const own = sequence[at] ?? -1;
    return sequence.slice(at + 1).filter((later) => later < own).length >= parallelism;
  });
}

interface StartCounter {
  /** Returns the number of current permit holders. */
  start(attempt: Arrival): number;
  end(attempt: Arrival): void;
  told(sourceId: string, sourceRetried: number): void;
}

/** Returns the maximum of concurrent holders. */
function countStarts(
  events: readonly LaneEvent[],
  lane: Lane,
  entrants: ReadonlyMap<string, Entrant>,
  onStart: (started: number, attempt: Arrival) => void,
): number {
  const isOf = isIn(lane, entrants);
  const counter: StartCounter = lane.kind === 'queue' ? new StartedMessages(entrants) : new RunningAttempts();
  let most = 0;
  for (const event of events) {
    if (event.kind === 'told') counter.told(event.sourceId, event.sourceRetried);
    else if (event.kind === 'responded' && isOf(event.attempt)) counter.end(event.attempt);
    else if (event.kind === 'arrived' && isOf(event.attempt)) {
      const started = counter.start(event.attempt);
      onStart(started, event.attempt);
      most = Math.max(most, started);
    }
  }
  return most;
}

/**
 * The messages of a queue that were started and are not finished (contract M 14.1). A message whose last attempt had its
 * response just before a kill counts as finished here but is started again, which only makes the count too small.
 */
class StartedMessages implements StartCounter {
  readonly #entrants: ReadonlyMap<string, Entrant>;
  /**
   * By message: the callbacks that must still end before the message is finished; `delivery` while the message may have
   * further attempts.
   */
  readonly #open = new Map<string, Set<number | 'delivery'>>();

  constructor(entrants: ReadonlyMap<string, Entrant>) {
    this.#entrants = entrants;
  }

  start({ messageId }: Arrival): number {
    const open = this.#open.get(messageId) ?? new Set();
    this.#open.set(messageId, open.add('delivery'));
    return this.#open.size;
  }

  end({ tag, messageId, retried, status }: Arrival): void {
    const entrant = this.#entrants.get(tag);
    const open = this.#open.get(messageId);
    if (!entrant || !open) return;
    if (entrant.hasCallback) open.add(retried);
    if (status < 300 || retried >= entrant.maxRetries) this.#close(messageId, 'delivery');
  }

  told(sourceId: string, sourceRetried: number): void {
    this.#close(sourceId, sourceRetried);
  }

  #close(messageId: string, what: number | 'delivery'): void {
    const open = this.#open.get(messageId);
    open?.delete(what);
    if (open?.size === 0) this.#open.delete(messageId);
  }
}

/** The running attempts of a key (contract M 16.5). Attempts of a killed server hold no permit. */
class RunningAttempts implements StartCounter {
  readonly #running = new Map<number, Set<Arrival>>();

  start(attempt: Arrival): number {
    const running = this.#running.get(attempt.incarnation) ?? new Set();
    this.#running.set(attempt.incarnation, running.add(attempt));
    return running.size;
  }

  end(attempt: Arrival): void {
    this.#running.get(attempt.incarnation)?.delete(attempt);
  }

  told(): void {}
}

/**
 * The number of starts above the limit of fixed windows, in the worst interval. An interval overlaps one window more than
 * fit into it, and another one because attempts take different times to arrive.
 */
function excessStarts(startsMs: readonly number[], rate: number, periodMs: number): number {
  let worst = 0;
  for (const [first, fromMs] of startsMs.entries()) {
    for (let last = first; last < startsMs.length; last += 1) {
      const windows = Math.floor(((startsMs[last] ?? fromMs) - fromMs) / periodMs) + 3;
      worst = Math.max(worst, last - first + 1 - rate * windows);
    }
  }
  return worst;
}

/** Attempts that were claimed before a pause may still arrive. A server that starts after the pause knows the pause. */
function notHeldBack(events: readonly LaneEvent[], lane: Lane, entrants: ReadonlyMap<string, Entrant>): string[] {
  const strays: string[] = [];
  const condemnedIn = new Map<string, number>();
  const entered = new Set<string>();
  let pausedIn: number | undefined;
  for (const event of events) {
    switch (event.kind) {
      case 'entered':
        if (event.entrant.lanes.includes(lane)) entered.add(event.entrant.tag);
        break;
      case 'paused':
        if (event.lane === lane) pausedIn = event.incarnation;
        break;
      case 'resumed':
        if (event.lane === lane) pausedIn = undefined;
        break;
      case 'deleted':
        if (event.lane !== lane) break;
        for (const tag of entered) condemnedIn.set(tag, event.incarnation);
        entered.clear();
        break;
      case 'arrived': {
        const { tag, messageId, incarnation } = event.attempt;
        if (entrants.get(tag)?.lanes.includes(lane) !== true) break;
        if (incarnation > (pausedIn ?? Infinity)) strays.push(`${lane.name} was paused: ${messageId}`);
        if (incarnation > (condemnedIn.get(tag) ?? Infinity)) strays.push(`${lane.name} was deleted: ${messageId}`);
        break;
      }
      case 'responded':
      case 'told':
        break;
    }
  }
  return strays;
}
