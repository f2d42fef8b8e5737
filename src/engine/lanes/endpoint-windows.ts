/**
 * How many attempts may an endpoint (an origin) have now? Each has one window, which its answers open and its failures halve.
 * The window limits new and backlogged messages differently:
 *
 * - All attempts: the configured maximum at first; halved by each attempt that ends without an answer, one more per answer.
 * - Attempts of backlogged messages: a slow start with a few; one more per good answer, which doubles them with each round of
 *   answers. After an outage an endpoint is often starting itself, and its whole backlog would reach it in its first moment.
 *   A message that has just been published is exempt: it arrives no faster than its publisher sends.
 *
 * The window is never smaller than a few attempts: the worker must notice soon when an endpoint recovers.
 */
import type { ClaimRequest } from '../dispatch/claims.ts';
import { half } from './budget.ts';

/** Origins whose growth is remembered, and origins with a reduced maximum: the latest of each. */
const STARTED_MAX = 2_048;
const REDUCED_MAX = 512;
/** Origins without attempts whose room a claim is given. */
const IDLE_NAMED_MAX = 32;

/** The rooms that are set aside for one claim until the claim is answered. */
export interface WindowOffer extends Pick<ClaimRequest, 'capacityByOrigin' | 'defaultCapacity'> {
  slots: number;
}

const NO_SHARE: Readonly<Share> = { count: 0, silent: 0 };

export class EndpointWindows {
  readonly #countMax: number;
  readonly #inFlight = new Shares<string, Share>();
  /** Maximum of all attempts, by origin; absent: the configured maximum. */
  readonly #reduced = new Map<string, number>();
  /** Maximum of backlogged attempts, by origin; absent: a few. */
  readonly #started = new Map<string, number>();
  readonly #offers = new Set<WindowOffer>();

  /** `countMax`: attempts to any origin at a time. */
  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  /** Attempts start, end or become silent. */
  add(origin: string, count: number, silent: number): void {
    const share = this.#inFlight.find(origin) ?? { ...NO_SHARE };
    share.count += count;
    share.silent += silent;
    this.#inFlight.keep(origin, share);
  }

  /** How many more attempts may start, once `ended` of those in flight are over. */
  roomOf(origin: string, ended = 0): number {
    const max = this.#reduced.get(origin) ?? this.#countMax;
    return Math.max(0, max - this.#offeredTo(origin) - (this.#shareOf(origin).count - ended));
  }

  /** How many more attempts of backlogged messages may start. */
  roomOfBacklog(origin: string): number {
    return Math.min(this.#roomOfStart(origin), this.roomOf(origin));
  }

  /** Whether attempts ended without an answer so often that the origin has the smallest window. */
  isHeldBack(origin: string): boolean {
    return (this.#reduced.get(origin) ?? Infinity) <= FEW;
  }

  /**
   * Sets half of each origin's room aside for a claim of up to `slots` backlogged messages, while the worker has `freeSlots`. The
   * claim gets the rooms of origins where these differ from the default. `served`: origins whose backlogs the claim serves.
   */
  offer(slots: number, freeSlots: number, served: ReadonlySet<string>): WindowOffer {
    const most = half(Math.min(this.#countMax - this.#offeredToEach(), freeSlots));
    const defaultCapacity = Math.min(most, FEW);
    const capacityByOrigin: Record<string, number> = Object.create(null);
    for (const origin of this.#knownOrigins(served, defaultCapacity)) {
      const room = Math.min(slots, this.#roomOfStart(origin), half(this.roomOf(origin)));
      const isBusy = (this.#inFlight.find(origin)?.count ?? FEW) >= FEW;
      const isMore = room > defaultCapacity && (isBusy || served.has(origin));
      if (isMore || room < Math.min(slots, defaultCapacity)) capacityByOrigin[origin] = room;
    }
    const offer = { slots, capacityByOrigin, defaultCapacity };
    this.#offers.add(offer);
    return offer;
  }

  endOffer(offer: WindowOffer): void {
    this.#offers.delete(offer);
  }

  /**
   * An attempt ended with an answer. A bad answer means that the endpoint is overloaded or broken: it gets no more backlogged
   * messages than before.
   */
  noteAnswer(origin: string, isGood: boolean): void {
    const started = this.#started.get(origin);
    // New messages may be more already: the endpoint has shown that it can take as many.
    const before = started ?? Math.max(FEW, this.#shareOf(origin).count);
    if (isGood && started !== this.#countMax) this.#start(origin, before + 1);
    const reduced = this.#reduced.get(origin);
    if (reduced === undefined) return;
    if (reduced + 1 < this.#countMax) this.#reduced.set(origin, reduced + 1);
    else this.#reduced.delete(origin);
  }

  /** An attempt ended without an answer. Returns whether the origin has now reached the smallest window. */
  noteNoAnswer(origin: string): boolean {
    const started = this.#started.get(origin);
    if (started !== undefined) this.#start(origin, halved(started));
    const max = this.#reduced.get(origin) ?? this.#countMax;
    if (max <= FEW) return false;
    forgetFirst(this.#reduced, REDUCED_MAX - 1);
    this.#reduced.set(origin, halved(max));
    return this.isHeldBack(origin);
  }

  #start(origin: string, max: number): void {
    this.#started.set(origin, Math.min(max, this.#countMax));
    forgetFirst(this.#started, STARTED_MAX);
  }

  #shareOf(origin: string): Readonly<Share> {
    return this.#inFlight.find(origin) ?? NO_SHARE;
  }

  /**
   * Backlogged attempts that slow start still allows. Silent attempts do not count, and as many more may start as are silent: an
   * endpoint that takes a minute for each answer gets twice as many each time its latest attempts have become silent.
   */
  #roomOfStart(origin: string): number {
    const { count, silent } = this.#shareOf(origin);
    return Math.max(0, Math.max(this.#started.get(origin) ?? FEW, silent) - (count - silent));
  }

  /**
   * Origins whose room may differ from the default. An idle origin with a grown window is named only when the claim serves it, or
   * while such origins are few: a thousand names would cost more than they gain. Unnamed, it gets a few attempts, and is named
   * once it is busy with these. Origins whose few attempts are all silent are left out where each may have the default as well.
   */
  #knownOrigins(served: ReadonlySet<string>, defaultCapacity: number): ReadonlySet<string> {
    const known = new Set([...this.#offers].flatMap(({ capacityByOrigin }) => Object.keys(capacityByOrigin)));
    const isAmple = half(this.#countMax - this.#offeredToEach() - FEW) >= defaultCapacity;
    const started = this.#started.size > IDLE_NAMED_MAX ? [] : this.#started.keys();
    const quiet = isAmple ? [] : this.#inFlight.quiet.keys();
    for (const origins of [this.#inFlight.busy.keys(), quiet, this.#reduced.keys(), started, served])
      for (const origin of origins) known.add(origin);
    return known;
  }

  /** Slots that the claims under way offer to each origin that they do not name. */
  #offeredToEach(): number {
    let offered = 0;
    for (const { slots, defaultCapacity } of this.#offers) offered += Math.min(slots, defaultCapacity);
    return offered;
  }

  #offeredTo(origin: string): number {
    let offered = 0;
    for (const { slots, capacityByOrigin, defaultCapacity } of this.#offers) {
      offered += Math.min(slots, capacityByOrigin[origin] ?? defaultCapacity);
    }
    return offered;
  }
}

function halved(count: number): number {
  return Math.max(FEW, Math.floor(count / 2));
}

function forgetFirst(map: Map<string, number>, sizeMax: number): void {
  const [first] = map.keys();
  if (map.size > sizeMax && first !== undefined) map.delete(first);
}

/** The smallest window of an endpoint. */
const FEW = 4;

/** The attempts in flight of one backlog, or of one origin. */
export interface Share {
  /** Attempts, with and without a slot. */
  count: number;
  /** Attempts that have a place among the silent ones instead of a slot. */
  silent: number;
}

/** Shares with few attempts, all of them silent, are kept apart: there may be thousands, and no claim is told of them. */
export class Shares<Name extends string, S extends Share> {
  readonly #busy = new Map<Name, S>();
  readonly #quiet = new Map<Name, S>();

  /** All others. */
  get busy(): ReadonlyMap<Name, S> {
    return this.#busy;
  }

  get quiet(): ReadonlyMap<Name, S> {
    return this.#quiet;
  }

  find(name: Name): S | undefined {
    return this.#busy.get(name) ?? this.#quiet.get(name);
  }

  /** Call it after each change of a share. A share without attempts is forgotten. */
  keep(name: Name, share: S, isHeavy = false): void {
    const isQuiet = share.silent === share.count && share.count < FEW && !isHeavy;
    if (isQuiet) this.#busy.delete(name);
    else this.#quiet.delete(name);
    if (share.count === 0) this.#quiet.delete(name);
    else (isQuiet ? this.#quiet : this.#busy).set(name, share);
  }
}
