/**
 * How many attempts may be in flight, in all and to one origin: the fair, bounded share of promise P9.
 *
 * An origin may start another attempt while it has fewer in flight than there are free places in all, fewer bytes
 * than there are free bytes, and fewer attempts than its own maximum. So one slow origin alone never takes the last
 * place or the last byte, a thousand slow ones shrink to a few places each, and a newcomer finds room (the dynamic
 * threshold of shared-memory switches).
 *
 * An origin whose attempts end without an answer is given less and less of its maximum, and more again with each
 * answer: those that hang hold few places for as long as they hang, and the rest stays free for everyone else.
 */
import type { EngineSettings } from './settings.ts';

/** Attempts in flight that even an origin may have which never answers: one that comes back is to be noticed soon. */
const UNANSWERED_COUNT_MAX = 4;
/** Origins remembered for not answering, the latest: all of them together fill the places once. */
const UNANSWERED_ORIGINS_MAX = 512;

/** What is set aside for one claim until its answer is in. */
export interface Offer {
  places: number;
  bytes: number;
  /** Room of every origin that has too little of it to take all `places`; that of all others is `defaultRoom`. */
  roomByOrigin: Record<string, number>;
  defaultRoom: number;
}

export class InFlight {
  readonly #countMax: number;
  readonly #countPerOriginMax: number;
  readonly #bytesMax: number;
  readonly #shareByOrigin = new Map<string, { count: number; bytes: number }>();
  /** Attempts at a time for those that have less than the maximum, because attempts ended without an answer. */
  readonly #reducedMaxByOrigin = new Map<string, number>();
  #count = 0;
  #bytes = 0;
  #offer: Offer | undefined;

  constructor(settings: Pick<EngineSettings, 'inFlightMax' | 'inFlightPerOriginMax' | 'inFlightBytesMax'>) {
    this.#countMax = settings.inFlightMax;
    this.#countPerOriginMax = settings.inFlightPerOriginMax;
    this.#bytesMax = settings.inFlightBytesMax;
  }

  get count(): number {
    return this.#count;
  }

  /** Whether there is no place, or no byte, for another one. */
  get isFull(): boolean {
    return this.freePlaces <= 0 || this.freeBytes <= 0;
  }

  get freePlaces(): number {
    return this.#countMax - this.#count - (this.#offer?.places ?? 0);
  }

  /** Body bytes that may still be taken in; not positive when the budget is used up. */
  get freeBytes(): number {
    return this.#bytesMax - this.#bytes - (this.#offer?.bytes ?? 0);
  }

  countOf(origin: string): number {
    return this.#shareByOrigin.get(origin)?.count ?? 0;
  }

  /** How many more attempts `origin` may start now. */
  roomOf(origin: string): number {
    return this.#roomBeside(origin, { count: 0, bytes: 0 });
  }

  /** Whether `origin` may start another attempt in the place of one of `bytes` that ends; not when it is to have fewer. */
  mayGoOn(origin: string, bytes: number): boolean {
    return this.#roomBeside(origin, { count: 1, bytes }) > 0;
  }

  /**
   * Sets half of what is free aside for a claim of up to `placesMax` messages. The other half is for those that are
   * accepted before the claim is answered: together they never exceed a limit. The odd place is the claim's.
   */
  offer(placesMax: number): Offer {
    const places = Math.min(placesMax, half(this.freePlaces));
    const roomByOrigin: Record<string, number> = Object.create(null);
    for (const origins of [this.#shareByOrigin, this.#reducedMaxByOrigin]) {
      for (const origin of origins.keys()) {
        const room = half(this.roomOf(origin));
        if (room < places) roomByOrigin[origin] = room;
      }
    }
    this.#offer = {
      places,
      bytes: half(this.freeBytes),
      roomByOrigin,
      defaultRoom: half(Math.min(this.#countPerOriginMax, this.freePlaces)),
    };
    return this.#offer;
  }

  /** The claim is answered: what it took has entered or is about to. */
  endOffer(): void {
    this.#offer = undefined;
  }

  /** Sets up to `bytesMax` bytes aside, beside those of the messages in flight; returns how many. */
  setAside(bytesMax: number): number {
    const bytes = Math.max(0, Math.min(bytesMax, this.freeBytes));
    this.#bytes += bytes;
    return bytes;
  }

  /** Gives back what `setAside` returned. */
  putBack(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** Whether one more message of `bytes` fits beside the others. One always fits when nothing is in flight. */
  hasSpace(bytes: number): boolean {
    if (this.#count === 0 && !this.#offer) return true;
    return this.freePlaces > 0 && bytes <= this.freeBytes;
  }

  enter(origin: string, bytes: number): void {
    this.#count += 1;
    this.#bytes += bytes;
    const share = this.#shareByOrigin.get(origin);
    if (!share) {
      this.#shareByOrigin.set(origin, { count: 1, bytes });
      return;
    }
    share.count += 1;
    share.bytes += bytes;
  }

  leave(origin: string, bytes: number): void {
    this.#count -= 1;
    this.#bytes -= bytes;
    const share = this.#shareByOrigin.get(origin);
    if (!share) return;
    share.count -= 1;
    share.bytes -= bytes;
    if (share.count === 0) this.#shareByOrigin.delete(origin);
  }

  /** An attempt ended with an answer, whatever that said: one more at a time, until the maximum is reached again. */
  noteAnswer(origin: string): void {
    const reduced = this.#reducedMaxByOrigin.get(origin);
    if (reduced === undefined) return;
    if (reduced + 1 < this.#countPerOriginMax) this.#reducedMaxByOrigin.set(origin, reduced + 1);
    else this.#reducedMaxByOrigin.delete(origin);
  }

  /** An attempt ended without an answer: half as many at a time. True when it has the fewest from now on. */
  noteNoAnswer(origin: string): boolean {
    const max = this.#maxOf(origin);
    if (max <= UNANSWERED_COUNT_MAX) return false;
    const [oldest] = this.#reducedMaxByOrigin.keys();
    if (this.#reducedMaxByOrigin.size >= UNANSWERED_ORIGINS_MAX && oldest !== undefined) {
      this.#reducedMaxByOrigin.delete(oldest);
    }
    const reduced = Math.max(UNANSWERED_COUNT_MAX, Math.floor(max / 2));
    this.#reducedMaxByOrigin.set(origin, reduced);
    return reduced === UNANSWERED_COUNT_MAX;
  }

  /** How many more attempts `origin` might start if those of `ended`, which are its own, were over. */
  #roomBeside(origin: string, ended: { count: number; bytes: number }): number {
    const share = this.#shareByOrigin.get(origin);
    const count = (share?.count ?? 0) - ended.count;
    const freePlaces = this.freePlaces + ended.count;
    if (share && count > 0 && share.bytes - ended.bytes >= this.freeBytes + ended.bytes) return 0;
    return Math.max(0, Math.min(this.#maxOf(origin) - this.#offeredTo(origin), freePlaces) - count);
  }

  #maxOf(origin: string): number {
    return this.#reducedMaxByOrigin.get(origin) ?? this.#countPerOriginMax;
  }

  #offeredTo(origin: string): number {
    if (!this.#offer) return 0;
    const { places, roomByOrigin, defaultRoom } = this.#offer;
    return Math.min(places, roomByOrigin[origin] ?? defaultRoom);
  }
}

function half(amount: number): number {
  return Math.max(0, Math.ceil(amount / 2));
}
