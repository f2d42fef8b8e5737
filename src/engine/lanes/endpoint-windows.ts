/**
 * The concurrency window of each endpoint (an origin): how many attempts it may have at a time. Responses grow the
 * window, attempts without a response halve it. New and backlogged messages have different limits:
 *
 * - All attempts: the configured maximum at first; halved by each attempt without a response, plus one for each response.
 * - Attempts of backlogged messages: slow start from `WINDOW_MIN`, plus one for each good response, which doubles the
 *   number with each round of responses. After an outage an endpoint often has just started, and would otherwise get its
 *   whole backlog at once. New messages are exempt from slow start: they arrive no faster than their publisher sends.
 *
 * A window is never smaller than `WINDOW_MIN`: the worker must notice soon when an endpoint recovers.
 */
import type { ClaimRequest } from '../dispatch/claims.ts';
import { half } from './budget.ts';

/**
 * The maximum of origins whose slow start is remembered, and of origins whose reduced maximum is remembered. The latest
 * such origins are kept.
 */
const SLOW_STARTS_MAX = 2_048;
const REDUCED_MAX = 512;
/** A claim lists the slow-start capacities of idle origins only if there are at most this many such origins. */
const IDLE_NAMED_MAX = 32;

/** The capacity that is reserved for a claim until the result of the claim is known. */
export interface WindowOffer extends Pick<ClaimRequest, 'capacityByOrigin' | 'defaultCapacity'> {
  slots: number;
}

const NO_LOAD: Readonly<Load> = { count: 0, silent: 0 };

export class EndpointWindows {
  readonly #countMax: number;
  readonly #inFlight = new Loads<string, Load>();
  /** For each origin, the maximum of all attempts; absent: the configured maximum. */
  readonly #reducedMax = new Map<string, number>();
  /** For each origin, the maximum of attempts of backlogged messages; absent: `WINDOW_MIN`. */
  readonly #slowStartMax = new Map<string, number>();
  readonly #offers = new Set<WindowOffer>();

  /** `countMax`: attempts to any origin at a time. */
  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  /** Notes attempts that have started, ended or become silent. The numbers are negative for attempts that have ended. */
  add(origin: string, count: number, silent: number): void {
    const load = this.#inFlight.find(origin) ?? { ...NO_LOAD };
    load.count += count;
    load.silent += silent;
    this.#inFlight.update(origin, load);
  }

  /** How many more attempts may start after `ended` of the attempts in flight have ended. */
  capacityOf(origin: string, ended = 0): number {
    const max = this.#reducedMax.get(origin) ?? this.#countMax;
    return Math.max(0, max - this.#offeredTo(origin) - (this.#loadOf(origin).count - ended));
  }

  /** How many more attempts of backlogged messages to the origin may start. */
  backlogCapacityOf(origin: string): number {
    return Math.min(this.#slowStartCapacityOf(origin), this.capacityOf(origin));
  }

  /** Whether so many attempts ended without a response that the origin has the smallest window. */
  isHeldBack(origin: string): boolean {
    return (this.#reducedMax.get(origin) ?? Infinity) <= WINDOW_MIN;
  }

  /**
   * Reserves half of the capacity of each origin for a claim of up to `slots` backlogged messages; the worker has `freeSlots`.
   * The claim gets the capacities that differ from the default. `served`: origins whose backlogs the claim serves.
   */
  offer(slots: number, freeSlots: number, served: ReadonlySet<string>): WindowOffer {
    const most = half(Math.min(this.#countMax - this.#offeredToEach(), freeSlots));
    const defaultCapacity = Math.min(most, WINDOW_MIN);
    const capacityByOrigin: Record<string, number> = Object.create(null);
    for (const origin of this.#knownOrigins(served, defaultCapacity)) {
      const capacity = Math.min(slots, this.#slowStartCapacityOf(origin), half(this.capacityOf(origin)));
      const isBusy = (this.#inFlight.find(origin)?.count ?? WINDOW_MIN) >= WINDOW_MIN;
      const isMore = capacity > defaultCapacity && (isBusy || served.has(origin));
      if (isMore || capacity < Math.min(slots, defaultCapacity)) capacityByOrigin[origin] = capacity;
    }
    const offer = { slots, capacityByOrigin, defaultCapacity };
    this.#offers.add(offer);
    return offer;
  }

  endOffer(offer: WindowOffer): void {
    this.#offers.delete(offer);
  }

  /**
   * Notes that an attempt ended with a response. A bad response means that the endpoint is overloaded or broken, so the
   * response does not grow the slow-start window.
   */
  noteResponse(origin: string, isGood: boolean): void {
    const slowStartMax = this.#slowStartMax.get(origin);
    // New messages may have brought more attempts in flight already: the endpoint has shown that it can handle as many
    // attempts.
    const before = slowStartMax ?? Math.max(WINDOW_MIN, this.#loadOf(origin).count);
    if (isGood && slowStartMax !== this.#countMax) this.#setSlowStart(origin, before + 1);
    const reducedMax = this.#reducedMax.get(origin);
    if (reducedMax === undefined) return;
    if (reducedMax + 1 < this.#countMax) this.#reducedMax.set(origin, reducedMax + 1);
    else this.#reducedMax.delete(origin);
  }

  /**
   * Notes that an attempt ended without a response. Returns whether the origin now has the smallest window because of
   * this.
   */
  noteNoResponse(origin: string): boolean {
    const slowStartMax = this.#slowStartMax.get(origin);
    if (slowStartMax !== undefined) this.#setSlowStart(origin, halved(slowStartMax));
    const max = this.#reducedMax.get(origin) ?? this.#countMax;
    if (max <= WINDOW_MIN) return false;
    forgetFirst(this.#reducedMax, REDUCED_MAX - 1);
    this.#reducedMax.set(origin, halved(max));
    return this.isHeldBack(origin);
  }

  #setSlowStart(origin: string, max: number): void {
    this.#slowStartMax.set(origin, Math.min(max, this.#countMax));
    forgetFirst(this.#slowStartMax, SLOW_STARTS_MAX);
  }

  #loadOf(origin: string): Readonly<Load> {
    return this.#inFlight.find(origin) ?? NO_LOAD;
  }

  /**
   * How many more backlogged attempts slow start allows. Silent attempts do not count, and at least as many other
   * attempts may be in flight as there are silent ones: the window of an endpoint that takes a minute to respond doubles
   * each time its latest attempts have become silent.
   */
  #slowStartCapacityOf(origin: string): number {
    const { count, silent } = this.#loadOf(origin);
    return Math.max(0, Math.max(this.#slowStartMax.get(origin) ?? WINDOW_MIN, silent) - (count - silent));
  }

  /**
   * Origins whose capacity may differ from the default. An idle origin with a grown window is named only when the claim
   * serves it, or while there are few such origins: a thousand names would cost more than they gain. An unnamed origin
   * gets the default capacity, and is named once it is busy with these attempts. Origins whose few attempts are all
   * silent are left out if each of these origins has the default capacity anyway.
   */
  #knownOrigins(served: ReadonlySet<string>, defaultCapacity: number): ReadonlySet<string> {
    const named = new Set([...this.#offers].flatMap(({ capacityByOrigin }) => Object.keys(capacityByOrigin)));
    const isAmple = half(this.#countMax - this.#offeredToEach() - WINDOW_MIN) >= defaultCapacity;
    const slowStartMax = this.#slowStartMax.size > IDLE_NAMED_MAX ? [] : this.#slowStartMax.keys();
    const quiet = isAmple ? [] : this.#inFlight.quiet.keys();
    for (const origins of [this.#inFlight.busy.keys(), quiet, this.#reducedMax.keys(), slowStartMax, served])
      for (const origin of origins) named.add(origin);
    return named;
  }

  /** The slots that the pending claims may use, all together, for an origin that no claim names. */
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
  return Math.max(WINDOW_MIN, Math.floor(count / 2));
}

function forgetFirst(map: Map<string, number>, sizeMax: number): void {
  const [first] = map.keys();
  if (map.size > sizeMax && first !== undefined) map.delete(first);
}

/** The smallest window of an endpoint. */
const WINDOW_MIN = 4;

/** The attempts in flight of one backlog, or of one origin. */
export interface Load {
  /** Attempts, with and without a slot. */
  count: number;
  /** Attempts that count against the limit of silent attempts instead of a slot. */
  silent: number;
}

/**
 * Loads by name. Loads with only a few attempts, all silent, are kept apart: there may be thousands, and claims do not
 * name them.
 */
export class Loads<Name extends string, S extends Load> {
  readonly #busy = new Map<Name, S>();
  readonly #quiet = new Map<Name, S>();

  /** The loads that claims name. */
  get busy(): ReadonlyMap<Name, S> {
    return this.#busy;
  }

  get quiet(): ReadonlyMap<Name, S> {
    return this.#quiet;
  }

  find(name: Name): S | undefined {
    return this.#busy.get(name) ?? this.#quiet.get(name);
  }

  /** Must be called after each change of a load. Forgets a load without attempts. */
  update(name: Name, load: S, isHeavy = false): void {
    const isQuiet = load.silent === load.count && load.count < WINDOW_MIN && !isHeavy;
    if (isQuiet) this.#busy.delete(name);
    else this.#quiet.delete(name);
    if (load.count === 0) this.#quiet.delete(name);
    else (isQuiet ? this.#quiet : this.#busy).set(name, load);
  }
}
