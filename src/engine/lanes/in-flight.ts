/**
 * How many attempts may be in flight, in all, of one project and to one origin: the fair, bounded share of promise P9.
 *
 * One rule (`Pool`) shares delivery slots and body bytes among projects. Half of them are only for lines that have
 * answered lately; all other lines share the other half, again by that rule.
 *
 * A slot is for an attempt that is being sent or about to be answered. An attempt without an outcome after two seconds is
 * silent: it gives up its slot, and keeps its body bytes and a place among those that are silent. That allowance is larger and
 * shared by the same rule. A line that is not proven has a place there from the start of each attempt, so that no slot is held for
 * longer: endpoints that hang, however many they are and however long their timeouts, take places there and no slots.
 *
 * Within its project, a line may start another attempt while it has fewer attempts and bytes in flight than the project
 * may still add. So one slow origin leaves half to the others, and a thousand slow origins shrink to a few slots each.
 * Each origin also has windows of its own, which its answers open and its failures halve (`endpoint-windows.ts`).
 */
import type { ClaimRequest } from '../messages/claims.ts';
import type { Millis, ProjectId } from '../model.ts';
import type { EngineSettings } from '../settings.ts';
import { AnsweringLines } from './answering-lines.ts';
import { EndpointWindows, FEW } from './endpoint-windows.ts';
import { type OriginLine, readLine } from './origin-line.ts';
import { half, Pool, type PoolOffer, type Size } from './pool.ts';
import { type Sent, SentAttempts } from './sent-attempts.ts';
import { type Share, Shares } from './shares.ts';

/** So long after it was sent, an attempt without an outcome is silent. */
export const SILENT_AFTER_MS = 2_000;
/** Silent attempts at most, if no number is given: as many times the slots. */
const SILENT_TIMES_SLOTS = 8;
/** Lines that are known to a claim for their bytes have at least this share of all. */
const HEAVY_SHARE = 1 / 64;
/** Origins without attempts that a claim is told the room of. */
const IDLE_NAMED_MAX = 32;

/** What is set aside for one claim until it is answered, and what the claim must know of it. */
export interface Offer
  extends Pick<ClaimRequest, 'roomByOrigin' | 'defaultRoom' | 'roomByLine' | 'projects' | 'unproven'> {
  slots: number;
  bytes: number;
  /** What it has of each pool. */
  shares: { all: PoolOffer; unproven: PoolOffer; silent: PoolOffer };
}

const NOTHING: Readonly<Size> = { count: 0, bytes: 0 };

interface LineShare extends Size, Share {
  projectId: ProjectId;
  origin: string;
  /** Of the silent ones, those that have an outcome, which is being saved. */
  over: number;
}

const NO_SHARE: Readonly<Share & Size> = { count: 0, bytes: 0, silent: 0 };

/** What a project may still add: slots, bytes, and places among the silent attempts. */
interface Addable extends Size {
  places: number;
}

/** Why a line may start no more attempts (P14). */
export type Held = 'project' | 'unproven' | 'origin';

export class InFlight {
  readonly #countPerOriginMax: number;
  readonly #all: Pool;
  /** The part of `#all` that lines use which have not answered lately. */
  readonly #unproven: Pool;
  /** Silent attempts, and those of unproven lines, which may become silent. Their bytes count in the other pools. */
  readonly #silent: Pool;
  readonly #sent = new SentAttempts();
  readonly #heavyBytes: number;
  readonly #answering: AnsweringLines;
  readonly #lines = new Shares<OriginLine, LineShare>();
  readonly #origins = new Shares<string, Share>();
  readonly #windows: EndpointWindows;
  readonly #offers = new Set<Offer>();
  #bytesSetAside = 0;

  /** Calls `onProof` when a line becomes proven, and when it is proven no more. */
  constructor(
    settings: Pick<EngineSettings, 'inFlightMax' | 'inFlightPerOriginMax' | 'inFlightBytesMax' | 'silentMax'>,
    onProof: (line: OriginLine, isProven: boolean) => void = () => {},
  ) {
    const { inFlightMax: count, inFlightBytesMax: bytes } = settings;
    this.#countPerOriginMax = settings.inFlightPerOriginMax;
    this.#windows = new EndpointWindows(settings.inFlightPerOriginMax);
    this.#all = new Pool({ count, bytes });
    this.#unproven = new Pool({ count: half(count), bytes: half(bytes) });
    this.#silent = new Pool({ count: settings.silentMax ?? SILENT_TIMES_SLOTS * count, bytes });
    this.#heavyBytes = bytes * HEAVY_SHARE;
    this.#answering = new AnsweringLines((line, isProven) => {
      const share = this.#lines.find(line);
      if (share) {
        const sign = isProven ? -1 : 1;
        const withSlots = sign * (share.count - share.silent);
        this.#unproven.enter(share.projectId, { count: withSlots, bytes: sign * share.bytes });
        this.#silent.enter(share.projectId, { count: withSlots, bytes: 0 });
      }
      onProof(line, isProven);
    });
  }

  /** All attempts, with and without slots. */
  get count(): number {
    return this.#all.count + this.#silent.count - this.#unproven.count;
  }

  /** The `count` projects with the most attempts, and how many those are. */
  busiest(count: number): [ProjectId, number][] {
    const projects = new Set([...this.#all.projects, ...this.#silent.projects]);
    const all = [...projects].map((projectId): [ProjectId, number] => [projectId, this.countOfProject(projectId)]);
    return all.toSorted(([, a], [, b]) => b - a).slice(0, count);
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
    return this.#lines.find(line)?.count ?? 0;
  }

  countOfProject(projectId: ProjectId): number {
    return this.slotsOfProject(projectId) + this.#silent.countOf(projectId) - this.#unproven.countOf(projectId);
  }

  slotsOfProject(projectId: ProjectId): number {
    return this.#all.countOf(projectId);
  }

  isProven(line: OriginLine): boolean {
    return this.#answering.has(line);
  }

  /** How many attempts the project may still start, and how many of these in lines that have not answered lately. */
  roomsOfProject(projectId: ProjectId): { all: number; unproven: number } {
    const { count: all } = this.#addableBy(projectId, true, NOTHING);
    const { count, places } = this.#addableBy(projectId, false, NOTHING);
    return { all, unproven: Math.min(count, places) };
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

  /** When the next attempt may become silent, as elapsed time. */
  get silentAtMs(): Millis | undefined {
    return this.#sent.first?.lookAtMs;
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
    return this.#windows.isHeldBack(origin);
  }

  /**
   * Sets half of the free slots and bytes aside for a claim of up to `slotsMax` messages. The other half is for messages
   * that are accepted, or taken by other claims, until this one is answered: together they never exceed a limit. An odd
   * slot goes to the claim. It serves `lines`, and is told the room of their origins.
   */
  offer(slotsMax: number, lines: readonly OriginLine[] = []): Offer {
    const slots = Math.min(slotsMax, half(this.freeSlots));
    const most = half(Math.min(this.#countPerOriginMax - this.#offeredToEach(), this.freeSlots));
    const defaultRoom = Math.min(most, FEW);
    const roomByOrigin: Record<string, number> = Object.create(null);
    const served = new Set(lines.map((line) => readLine(line).origin));
    for (const origin of this.#knownOrigins(served, defaultRoom)) {
      const room = Math.min(slots, this.#roomOfStart(origin), half(this.#roomOfOrigin(origin, NOTHING)));
      const isBusy = (this.#origins.find(origin)?.count ?? FEW) >= FEW;
      const isMore = room > defaultRoom && (isBusy || served.has(origin));
      if (isMore || room < Math.min(slots, defaultRoom)) roomByOrigin[origin] = room;
    }
    const roomByLine: Record<OriginLine, number> = {};
    const addable = new Map<string, Addable>();
    for (const [line, share] of this.#lines.busy) {
      const isProven = this.isProven(line);
      const name = `${share.projectId} ${isProven}`;
      const ofProject = addable.get(name) ?? this.#addableBy(share.projectId, isProven, NOTHING);
      addable.set(name, ofProject);
      const room = half(roomWithin(ofProject, share, NOTHING));
      if (room < (roomByOrigin[share.origin] ?? Math.min(slots, defaultRoom))) roomByLine[line] = room;
    }
    const bytes = half(this.freeBytes);
    const shares = {
      all: this.#all.offer(slotsMax),
      unproven: this.#unproven.offer(slotsMax),
      silent: this.#silent.offer(slotsMax),
    };
    const unproven = smaller(shares.unproven, shares.silent);
    const offer: Offer = { slots, bytes, roomByOrigin, roomByLine, defaultRoom, shares };
    if (isLess(shares.all, slots)) offer.projects = roomsOf(shares.all);
    if (isLess(unproven, slots)) {
      offer.unproven = { ...roomsOf(unproven), slots: unproven.slots, proven: this.#answering.all };
    }
    this.#offers.add(offer);
    return offer;
  }

  /** The claim is answered: what it took has entered or is about to. */
  endOffer(offer: Offer): void {
    this.#offers.delete(offer);
    this.#all.endOffer(offer.shares.all);
    this.#unproven.endOffer(offer.shares.unproven);
    this.#silent.endOffer(offer.shares.silent);
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
    const isEmpty = this.#lines.isEmpty && this.#offers.size === 0;
    return isEmpty || (this.freeSlots > 0 && bytes <= this.freeBytes);
  }

  enter(line: OriginLine, bytes: number): void {
    this.#add(line, { count: 1, bytes });
  }

  leave(line: OriginLine, bytes: number): void {
    const share = this.#lines.find(line);
    // Which attempt of the line leaves makes no difference. Without a slot left, it is a silent one.
    if (share && (share.over > 0 || share.silent === share.count)) this.#takeSlot(line, share);
    this.#add(line, { count: -1, bytes: -bytes });
  }

  /** An attempt goes out. Times are elapsed ones. `noteOver` must follow, before its outcome is noted. */
  noteSent(line: OriginLine, atMs: Millis): Sent {
    return this.#sent.add(line, atMs, atMs + SILENT_AFTER_MS);
  }

  /** The attempt has an outcome. If it is silent, it needs no slot again until that is saved. */
  noteOver(sent: Sent): void {
    this.#sent.delete(sent);
    const share = sent.isSilent ? this.#lines.find(sent.line) : undefined;
    if (share && share.over < share.silent) share.over += 1;
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
    this.#windows.noteAnswer(origin, status < 500 && status !== 429, this.#originOf(origin).count);
  }

  /** An attempt ended without an answer: half as many at a time. True when the origin has now reached the fewest. */
  noteNoAnswer(line: OriginLine, isTimeout = false): boolean {
    if (isTimeout) this.#answering.noteTimeout(line);
    return this.#windows.noteNoAnswer(readLine(line).origin);
  }

  /** Call it before slots are given out: attempts that have become silent give up theirs. */
  findSilent(nowMs: Millis): void {
    for (let sent = this.#sent.first; sent !== undefined && sent.lookAtMs <= nowMs; sent = this.#sent.first) {
      this.#answering.noteSilent(sent.line, sent.atMs);
      if (this.#giveUpSlot(sent.line)) {
        this.#sent.delete(sent);
        sent.isSilent = true;
      } else {
        this.#sent.moveToEnd(sent, nowMs + SILENT_AFTER_MS);
      }
    }
  }

  /** False when there is no place among the silent attempts, or the call of the attempt has no slot any more. */
  #giveUpSlot(line: OriginLine): boolean {
    const share = this.#lines.find(line);
    if (!share || share.silent === share.count) return false;
    const isProven = this.isProven(line);
    const hasPlace = isProven ? share.silent < this.#silent.roomOf(share.projectId).count : !this.#silent.isExceeded;
    if (hasPlace) this.#moveSlots(line, share, -1);
    return hasPlace;
  }

  #takeSlot(line: OriginLine, share: LineShare): void {
    this.#moveSlots(line, share, 1);
    share.over = Math.max(0, share.over - 1);
  }

  /** Adds so many slots to those of the line, in exchange for places among the silent attempts. */
  #moveSlots(line: OriginLine, share: LineShare, count: number): void {
    const { projectId, origin } = share;
    share.silent -= count;
    const ofOrigin = this.#origins.find(origin) ?? { count: 0, silent: 0 };
    ofOrigin.silent -= count;
    this.#keep(line, share, ofOrigin);
    this.#all.enter(projectId, { count, bytes: 0 });
    // One that is not proven has its place in any case.
    if (this.isProven(line)) this.#silent.leave(projectId, { count, bytes: 0 });
    else this.#unproven.enter(projectId, { count, bytes: 0 });
  }

  #add(line: OriginLine, size: Size): void {
    let share = this.#lines.find(line);
    if (!share) {
      share = { ...readLine(line), count: 0, bytes: 0, silent: 0, over: 0 };
    }
    const { projectId, origin } = share;
    this.#all.enter(projectId, size);
    if (!this.isProven(line)) {
      this.#unproven.enter(projectId, size);
      this.#silent.enter(projectId, { count: size.count, bytes: 0 });
    }
    share.count += size.count;
    share.bytes += size.bytes;
    const ofOrigin = this.#origins.find(origin) ?? { count: 0, silent: 0 };
    ofOrigin.count += size.count;
    this.#keep(line, share, ofOrigin);
  }

  #keep(line: OriginLine, share: LineShare, ofOrigin: Share): void {
    this.#lines.keep(line, share, share.bytes >= this.#heavyBytes);
    this.#origins.keep(share.origin, ofOrigin);
  }

  /** How many more attempts `line` may start once `ended`, which is its own, is over. */
  #roomBeside(line: OriginLine, ended: Size): number {
    const { projectId, origin } = readLine(line);
    const addable = this.#addableBy(projectId, this.isProven(line), ended);
    const share = this.#lines.find(line) ?? NO_SHARE;
    return Math.min(this.#roomOfOrigin(origin, ended), roomWithin(addable, share, ended));
  }

  /** What the project may still add, once `ended` is over. */
  #addableBy(projectId: ProjectId, isProven: boolean, ended: Size): Addable {
    const all = this.#all.roomOf(projectId, ended);
    if (isProven) return { ...all, places: Infinity };
    const unproven = this.#unproven.roomOf(projectId, ended);
    const { count: places } = this.#silent.roomOf(projectId, { count: ended.count, bytes: 0 });
    return { count: Math.min(all.count, unproven.count), bytes: Math.min(all.bytes, unproven.bytes), places };
  }

  #roomOfOrigin(origin: string, ended: Size): number {
    const count = this.#originOf(origin).count - ended.count;
    return Math.max(0, this.#windows.maxOf(origin) - this.#offeredTo(origin) - count);
  }

  /**
   * Backlogged attempts that slow start still allows this endpoint. It counts no silent ones, and allows as many as are silent: an
   * endpoint that takes a minute for each answer gets twice as many each time its latest attempts have become silent.
   */
  #roomOfStart(origin: string): number {
    const { count, silent } = this.#originOf(origin);
    return Math.max(0, Math.max(this.#windows.startOf(origin), silent) - (count - silent));
  }

  #originOf(origin: string): Readonly<Share> {
    return this.#origins.find(origin) ?? NO_SHARE;
  }

  /**
   * Origins whose room may differ from the default. One that may have more than a few, and has less, is named only when it is
   * served, or while such origins are few: a thousand names would cost more than what they bring. It gets a few, and is named
   * when it is busy with these. So are those whose few attempts are all silent, where each may have the default besides.
   */
  #knownOrigins(served: ReadonlySet<string>, defaultRoom: number): ReadonlySet<string> {
    const known = new Set([...this.#offers].flatMap(({ roomByOrigin }) => Object.keys(roomByOrigin)));
    const isAmple = half(this.#countPerOriginMax - this.#offeredToEach() - FEW) >= defaultRoom;
    for (const origin of this.#origins.busy.keys()) known.add(origin);
    if (!isAmple) for (const origin of this.#origins.quiet.keys()) known.add(origin);
    for (const origin of this.#windows.origins(IDLE_NAMED_MAX)) known.add(origin);
    for (const origin of served) known.add(origin);
    return known;
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
function roomWithin(addable: Addable, share: Share & Size, ended: Size): number {
  const count = share.count - ended.count;
  if (count > 0 && share.bytes - ended.bytes >= addable.bytes) return 0;
  return Math.max(0, Math.min(addable.count - Math.max(0, count - share.silent), addable.places - count));
}

/** What is offered of both pools. */
function smaller(a: PoolOffer, b: PoolOffer): PoolOffer {
  const roomByProject: Record<ProjectId, number> = {};
  for (const key of Object.keys({ ...a.roomByProject, ...b.roomByProject })) {
    const projectId = Number(key);
    const rooms = [a, b].map((offer) => offer.roomByProject[projectId] ?? offer.defaultRoom);
    roomByProject[projectId] = Math.min(...rooms);
  }
  const defaultRoom = Math.min(a.defaultRoom, b.defaultRoom);
  return { roomByProject, defaultRoom, slots: Math.min(a.slots, b.slots), bytes: a.bytes };
}

function roomsOf({ roomByProject, defaultRoom }: PoolOffer): Pick<PoolOffer, 'roomByProject' | 'defaultRoom'> {
  return { roomByProject, defaultRoom };
}

/** Whether some project has less room than `slots`. */
function isLess({ slots: offered, roomByProject, defaultRoom }: PoolOffer, slots: number): boolean {
  return Math.min(offered, defaultRoom, ...Object.values(roomByProject)) < slots;
}
