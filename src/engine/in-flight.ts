/**
 * How many attempts may be in flight, in all and to one origin: the fair, bounded share of promise P9.
 *
 * An origin may start another attempt while it has fewer in flight than there are free places in all, fewer bytes
 * than there are free bytes, and fewer attempts than its own maximum. So one slow origin alone never takes the last
 * place or the last byte, a thousand slow ones shrink to a few places each, and a newcomer finds room (the dynamic
 * threshold of shared-memory switches).
 */
import type { EngineSettings } from './settings.ts';

/** What is set aside for one claim until its answer is in. */
export interface Offer {
  places: number;
  bytes: number;
  /** Room of every origin that has less of it than one with nothing in flight, whose room is `defaultRoom`. */
  roomByOrigin: Record<string, number>;
  defaultRoom: number;
}

export class InFlight {
  readonly #countMax: number;
  readonly #countPerOriginMax: number;
  readonly #bytesMax: number;
  readonly #shareByOrigin = new Map<string, { count: number; bytes: number }>();
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

  get freePlaces(): number {
    return this.#countMax - this.#count - (this.#offer?.places ?? 0);
  }

  /** Body bytes that may still be taken in; not positive when the budget is used up. */
  get freeBytes(): number {
    return this.#bytesMax - this.#bytes - (this.#offer?.bytes ?? 0);
  }

  /** How many more attempts `origin` may start now. */
  roomOf(origin: string): number {
    const share = this.#shareByOrigin.get(origin);
    if (share && share.bytes >= this.freeBytes) return 0;
    const count = share?.count ?? 0;
    return Math.max(0, Math.min(this.#countPerOriginMax - this.#offeredTo(origin), this.freePlaces) - count);
  }

  /**
   * Sets half of what is free aside for a claim of up to `placesMax` messages. The other half is for those that are
   * accepted before the claim is answered: together they never exceed a limit. The odd place is the claim's.
   */
  offer(placesMax: number): Offer {
    const roomByOrigin: Record<string, number> = Object.create(null);
    for (const origin of this.#shareByOrigin.keys()) roomByOrigin[origin] = half(this.roomOf(origin));
    this.#offer = {
      places: Math.min(placesMax, half(this.freePlaces)),
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

  #offeredTo(origin: string): number {
    if (!this.#offer) return 0;
    const { places, roomByOrigin, defaultRoom } = this.#offer;
    return Math.min(places, roomByOrigin[origin] ?? defaultRoom);
  }
}

function half(amount: number): number {
  return Math.max(0, Math.ceil(amount / 2));
}
