/**
 * How many attempts may be in flight, in all, of one project and to one origin: the fair, bounded share of promise P9.
 *
 * One rule (`Pool`) shares delivery slots and body bytes among projects. Half of them are only for lines that have
 * answered lately; all other lines share the other half, again by that rule. So endpoints that hang, however many they
 * are and however long their timeouts, leave half of the slots to endpoints that answer, and some to those that may
 * answer.
 *
 * Within its project, a line may start another attempt while it has fewer attempts and bytes in flight than the project
 * may still add. So one slow origin leaves half to the others, and a thousand slow origins shrink to a few slots each.
 * Each origin also has a maximum of its own. It falls when attempts end without an answer, and rises with each answer.
 * Of what waits, an origin that has not answered yet gets a few at once, and more with each answer (`slow-start.ts`).
 */
import type { ClaimRequest } from '../messages/claims.ts';
import type { Millis, ProjectId } from '../model.ts';
import type { EngineSettings } from '../settings.ts';
import { AnsweringLines } from './answering-lines.ts';
import { type OriginLine, readLine } from './origin-line.ts';
import { half, Pool, type PoolOffer, type Size } from './pool.ts';
import { FIRST_COUNT_MAX, SlowStart } from './slow-start.ts';

/** Attempts in flight that every origin may have, even one that never answers: we must notice soon when it comes back. */
const UNANSWERED_COUNT_MAX = 4;
/** Origins that are remembered for not answering, the latest ones: together they fill all slots once. */
const UNANSWERED_ORIGINS_MAX = 512;
/** Origins without attempts that a claim is told the room of. */
const IDLE_NAMED_MAX = 32;

/** What is set aside for one claim until it is answered, and what the claim must know of it. */
export interface Offer
  extends Pick<ClaimRequest, 'roomByOrigin' | 'defaultRoom' | 'roomByLine' | 'projects' | 'unproven'> {
  slots: number;
  bytes: number;
  /** What it has of each pool. */
  shares: { all: PoolOffer; unproven: PoolOffer };
}

const NOTHING: Readonly<Size> = { count: 0, bytes: 0 };

interface LineShare extends Size {
  projectId: ProjectId;
  origin: string;
}

/** Why a line may start no more attempts (P14). */
export type Held = 'project' | 'unproven' | 'origin';

export class InFlight {
  readonly #countPerOriginMax: number;
  readonly #all: Pool;
  /** The part of `#all` that lines use which have not answered lately. */
  readonly #unproven: Pool;
  readonly #answering: AnsweringLines;
  readonly #shareByLine = new Map<OriginLine, LineShare>();
  readonly #countByOrigin = new Map<string, number>();
  /** The maximum of each origin that has a lower one, because its attempts ended without an answer. */
  readonly #reducedMaxByOrigin = new Map<string, number>();
  readonly #slowStart: SlowStart;
  readonly #offers = new Set<Offer>();
  #bytesSetAside = 0;

  /** Calls `onProof` when a line becomes proven, and when it is proven no more. */
  constructor(
    settings: Pick<EngineSettings, 'inFlightMax' | 'inFlightPerOriginMax' | 'inFlightBytesMax'>,
    onProof: (line: OriginLine, isProven: boolean) => void = () => {},
  ) {
    const { inFlightMax: count, inFlightBytesMax: bytes } = settings;
    this.#countPerOriginMax = settings.inFlightPerOriginMax;
    this.#slowStart = new SlowStart(settings.inFlightPerOriginMax);
    this.#all = new Pool({ count, bytes });
    this.#unproven = new Pool({ count: half(count), bytes: half(bytes) });
    this.#answering = new AnsweringLines((line, isProven) => {
      const share = this.#shareByLine.get(line);
      if (share && isProven) this.#unproven.leave(share.projectId, share);
      else if (share) this.#unproven.enter(share.projectId, share);
      onProof(line, isProven);
    });
  }

  get count(): number {
    return this.#all.count;
  }

  /** The `count` projects with the most attempts, and how many those are. */
  busiest(count: number): [ProjectId, number][] {
    return this.#all.busiest(count);
  }

  /** Whether there is no slot, or no byte, for another attempt. */
  get isFull(): boolean {
    return this.freeSlots <= 0 || this.freeBytes <= 0;
  }

  get freeSlots(): number {
    return this.#all.freeSlots;
  }

  /** Body bytes that may still be taken in; not positive when the budget is used up. */
  get freeBytes(): number {
    return this.#all.freeBytes - this.#bytesSetAside;
  }

  countOf(line: OriginLine): number {
    return this.#shareByLine.get(line)?.count ?? 0;
  }

  countOfProject(projectId: ProjectId): number {
    return this.#all.countOf(projectId);
  }

  isProven(line: OriginLine): boolean {
    return this.#answering.has(line);
  }

  /** How many attempts the project may still start, and how many of these in lines that have not answered lately. */
  roomsOfProject(projectId: ProjectId): { all: number; unproven: number } {
    const all = this.#addableBy(projectId, true, NOTHING).count;
    return { all, unproven: this.#addableBy(projectId, false, NOTHING).count };
  }

  /** How many more attempts of what waits `line` may start now. */
  roomOf(line: OriginLine): number {
    const { origin } = readLine(line);
    return Math.min(this.#roomOfStart(origin), this.roomOfNew(line));
  }

  /** How many more attempts of messages that have just come, and wait behind nobody, `line` may start now. */
  roomOfNew(line: OriginLine): number {
    return this.#roomBeside(line, NOTHING);
  }

  /** Whether an origin may start more as time passes, though nothing else happens. */
  get isRising(): boolean {
    return this.#slowStart.isRising;
  }

  /**
   * Whether `line` may start another attempt in place of an ending one of `bytes`; not when it must have fewer
   * attempts.
   */
  mayHandOff(line: OriginLine, bytes: number): boolean {
    return this.#roomBeside(line, { count: 1, bytes }) > 0;
  }

  /** Whose share keeps `line` from starting another attempt; `undefined`: no share does, or the worker is full. */
  whatHolds(line: OriginLine): Held | undefined {
    const { projectId, origin } = readLine(line);
    if (this.isFull) return undefined;
    if (Math.min(this.#roomOfStart(origin), this.#roomOfOrigin(origin, NOTHING)) === 0) return 'origin';
    const { all, unproven } = this.roomsOfProject(projectId);
    if (all === 0) return 'project';
    if (unproven === 0 && !this.isProven(line)) return 'unproven';
    return this.roomOf(line) === 0 ? 'origin' : undefined;
  }

  /** Whether the attempts to `origin` ended without an answer so often that it may have only the fewest at a time. */
  isHeldBack(origin: string): boolean {
    return (this.#reducedMaxByOrigin.get(origin) ?? Infinity) <= UNANSWERED_COUNT_MAX;
  }

  /**
   * Sets half of the free slots and bytes aside for a claim of up to `slotsMax` messages. The other half is for messages
   * that are accepted, or taken by other claims, until this one is answered: together they never exceed a limit. An odd
   * slot goes to the claim. It serves `lines`, and is told the room of their origins.
   */
  offer(slotsMax: number, lines: readonly OriginLine[] = []): Offer {
    const slots = Math.min(slotsMax, half(this.freeSlots));
    const most = half(Math.min(this.#countPerOriginMax - this.#offeredToEach(), this.freeSlots));
    const defaultRoom = Math.min(most, FIRST_COUNT_MAX);
    const roomByOrigin: Record<string, number> = Object.create(null);
    const served = new Set(lines.map((line) => readLine(line).origin));
    for (const origin of this.#knownOrigins(served)) {
      const room = Math.min(slots, this.#roomOfStart(origin), half(this.#roomOfOrigin(origin, NOTHING)));
      const isBusy = (this.#countByOrigin.get(origin) ?? FIRST_COUNT_MAX) >= FIRST_COUNT_MAX;
      const isMore = room > defaultRoom && (isBusy || served.has(origin));
      if (isMore || room < Math.min(slots, defaultRoom)) roomByOrigin[origin] = room;
    }
    const roomByLine: Record<OriginLine, number> = {};
    const addable = new Map<string, Size>();
    for (const [line, share] of this.#shareByLine) {
      const isProven = this.isProven(line);
      const name = `${share.projectId} ${isProven}`;
      const ofProject = addable.get(name) ?? this.#addableBy(share.projectId, isProven, NOTHING);
      addable.set(name, ofProject);
      const room = half(roomWithin(ofProject, share, NOTHING));
      if (room < (roomByOrigin[share.origin] ?? Math.min(slots, defaultRoom))) roomByLine[line] = room;
    }
    const bytes = half(this.freeBytes);
    const shares = { all: this.#all.offer(slotsMax), unproven: this.#unproven.offer(slotsMax) };
    const offer: Offer = { slots, bytes, roomByOrigin, roomByLine, defaultRoom, shares };
    if (isLess(shares.all, slots)) offer.projects = roomsOf(shares.all);
    if (isLess(shares.unproven, slots)) {
      offer.unproven = { ...roomsOf(shares.unproven), slots: shares.unproven.slots, proven: this.#answering.all };
    }
    this.#offers.add(offer);
    return offer;
  }

  /** The claim is answered: what it took has entered or is about to. */
  endOffer(offer: Offer): void {
    this.#offers.delete(offer);
    this.#all.endOffer(offer.shares.all);
    this.#unproven.endOffer(offer.shares.unproven);
  }

  /** Sets up to `bytesMax` more bytes aside, in addition to those of the messages in flight; returns how many. */
  setAside(bytesMax: number): number {
    const bytes = Math.max(0, Math.min(bytesMax, this.freeBytes));
    this.#bytesSetAside += bytes;
    return bytes;
  }

  /** Gives back what `setAside` returned. */
  putBack(bytes: number): void {
    this.#bytesSetAside -= bytes;
  }

  /** Whether one more message of `bytes` fits. One always fits when nothing is in flight. */
  hasSpace(bytes: number): boolean {
    return this.#all.isEmpty || (this.freeSlots > 0 && bytes <= this.freeBytes);
  }

  enter(line: OriginLine, bytes: number): void {
    this.#add(line, { count: 1, bytes });
  }

  leave(line: OriginLine, bytes: number): void {
    this.#add(line, { count: -1, bytes: -bytes });
  }

  /** An attempt goes out. Times are elapsed ones. */
  noteSent(line: OriginLine, atMs: Millis): void {
    this.#answering.noteSent(line, atMs);
    this.#slowStart.noteSent(readLine(line).origin, atMs);
  }

  /** An attempt goes on, and its endpoint shows that it is at work. */
  noteHeard(line: OriginLine, atMs: Millis): void {
    this.#answering.noteHeard(line, atMs);
  }

  /**
   * An attempt ended with any answer: the origin may have one more at a time, until its full maximum is reached again.
   */
  noteAnswer(line: OriginLine, atMs: Millis, status = 200): void {
    this.#answering.noteAnswer(line, atMs);
    const { origin } = readLine(line);
    if (status >= 500 || status === 429) this.#slowStart.noteBadAnswer(origin);
    else this.#slowStart.noteAnswer(origin, this.#countByOrigin.get(origin) ?? 0);
    const reduced = this.#reducedMaxByOrigin.get(origin);
    if (reduced === undefined) return;
    if (reduced + 1 < this.#countPerOriginMax) this.#reducedMaxByOrigin.set(origin, reduced + 1);
    else this.#reducedMaxByOrigin.delete(origin);
  }

  /** An attempt ended without an answer: half as many at a time. True when the origin has now reached the fewest. */
  noteNoAnswer(line: OriginLine): boolean {
    this.#answering.noteNoAnswer(line);
    const { origin } = readLine(line);
    this.#slowStart.noteNoAnswer(origin);
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

  /** We ended the attempt, or let its endpoint wait, until the next `noteSent`. */
  noteInterrupted(line: OriginLine): void {
    this.#answering.noteInterrupted(line);
  }

  /**
   * Call it before slots are given out. Once enough time has passed, a silent line is not proven any more, and an origin that
   * has neither answered nor failed may have more.
   */
  findSilent(nowMs: Millis): void {
    this.#answering.findSilent(nowMs);
    this.#slowStart.rise(nowMs);
  }

  #add(line: OriginLine, size: Size): void {
    let share = this.#shareByLine.get(line);
    if (!share) {
      share = { ...readLine(line), count: 0, bytes: 0 };
      this.#shareByLine.set(line, share);
    }
    const { projectId, origin } = share;
    this.#all.enter(projectId, size);
    if (!this.isProven(line)) this.#unproven.enter(projectId, size);
    share.count += size.count;
    share.bytes += size.bytes;
    if (share.count === 0) this.#shareByLine.delete(line);
    const ofOrigin = (this.#countByOrigin.get(origin) ?? 0) + size.count;
    if (ofOrigin === 0) this.#countByOrigin.delete(origin);
    else this.#countByOrigin.set(origin, ofOrigin);
  }

  /** How many more attempts `line` may start once `ended`, which is its own, is over. */
  #roomBeside(line: OriginLine, ended: Size): number {
    const { projectId, origin } = readLine(line);
    const addable = this.#addableBy(projectId, this.isProven(line), ended);
    const share = this.#shareByLine.get(line) ?? NOTHING;
    return Math.min(this.#roomOfOrigin(origin, ended), roomWithin(addable, share, ended));
  }

  /** What the project may still add, once `ended` is over. */
  #addableBy(projectId: ProjectId, isProven: boolean, ended: Size): Size {
    const all = this.#all.roomOf(projectId, ended);
    if (isProven) return all;
    const unproven = this.#unproven.roomOf(projectId, ended);
    return { count: Math.min(all.count, unproven.count), bytes: Math.min(all.bytes, unproven.bytes) };
  }

  #roomOfOrigin(origin: string, ended: Size): number {
    const count = (this.#countByOrigin.get(origin) ?? 0) - ended.count;
    return Math.max(0, this.#maxOf(origin) - this.#offeredTo(origin) - count);
  }

  #maxOf(origin: string): number {
    return this.#reducedMaxByOrigin.get(origin) ?? this.#countPerOriginMax;
  }

  /** How many more attempts of what waits the slow start of the origin leaves it. */
  #roomOfStart(origin: string): number {
    return Math.max(0, this.#slowStart.maxOf(origin) - (this.#countByOrigin.get(origin) ?? 0));
  }

  /**
   * Origins whose room may differ from the default. One that may have more than a few, and has less, is named only when it is
   * served, or while such origins are few: a thousand names would cost more than what they bring. It gets a few, and is named
   * when it is busy with these.
   */
  #knownOrigins(served: ReadonlySet<string>): ReadonlySet<string> {
    const offered = [...this.#offers].flatMap(({ roomByOrigin }) => Object.keys(roomByOrigin));
    const idle = this.#slowStart.origins(IDLE_NAMED_MAX);
    return new Set([...this.#countByOrigin.keys(), ...this.#reducedMaxByOrigin.keys(), ...offered, ...idle, ...served]);
  }

  /** Slots that the claims under way offer to each origin that they do not name. */
  #offeredToEach(): number {
    let offered = 0;
    for (const { slots, defaultRoom } of this.#offers) offered += Math.min(slots, defaultRoom);
    return offered;
  }

  #offeredTo(origin: string): number {
    let offered = 0;
    for (const { slots, roomByOrigin, defaultRoom } of this.#offers) {
      offered += Math.min(slots, roomByOrigin[origin] ?? defaultRoom);
    }
    return offered;
  }
}

/** How many more attempts a line with `share` may start, when its project may still add `addable`. */
function roomWithin(addable: Size, share: Size, ended: Size): number {
  const count = share.count - ended.count;
  if (count > 0 && share.bytes - ended.bytes >= addable.bytes) return 0;
  return Math.max(0, addable.count - count);
}

function roomsOf({ roomByProject, defaultRoom }: PoolOffer): Pick<PoolOffer, 'roomByProject' | 'defaultRoom'> {
  return { roomByProject, defaultRoom };
}

/** Whether some project has less room than `slots`. */
function isLess({ slots: offered, roomByProject, defaultRoom }: PoolOffer, slots: number): boolean {
  return Math.min(offered, defaultRoom, ...Object.values(roomByProject)) < slots;
}
