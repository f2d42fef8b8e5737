/**
 * Who may start an attempt now? The fair, bounded shares of promise P9, in three budgets and a window:
 *
 * - All attempts share the slots and body bytes of the worker, by project (`Budget`).
 * - Lines that have not answered lately (unproven backlogs) share half of these, by the same rule. The other half is for proven backlogs.
 * - An attempt without an outcome after two seconds is silent: it exchanges its slot for a place among the silent attempts, a
 *   larger budget, and keeps its body bytes. An attempt of an unproven backlog has a place there from its start. So endpoints that
 *   hang use up places and no slots, however many they are and however long their timeouts.
 * - Each endpoint has a window (`EndpointWindows`).
 *
 * Within its project, a backlog may start another attempt while it has fewer attempts and bytes in flight than the project may still
 * add. So one slow origin leaves half to the others, and a thousand slow origins shrink to a few slots each.
 */
import type { ClaimRequest } from '../dispatch/claims.ts';
import type { Millis, ProjectId } from '../model.ts';
import type { EngineSettings } from '../settings.ts';
import { type BacklogKey, parseBacklogKey } from './backlog-key.ts';
import { Budget, type BudgetOffer, half, type Size } from './budget.ts';
import { EndpointHealth } from './endpoint-health.ts';
import { EndpointWindows, type Share, Shares, type WindowOffer } from './endpoint-windows.ts';

/** An attempt without an outcome is silent this long after it was sent. */
export const SILENT_AFTER_MS = 2_000;
/** Places for silent attempts, as a multiple of the slots, if the settings give no number. */
const SILENT_TIMES_SLOTS = 8;
/** A backlog with this share of all bytes is named to claims even if all of its attempts are silent. */
const HEAVY_SHARE = 1 / 64;

/** What is set aside for one claim until it is answered, and the limits that the claim must keep. */
export interface Offer
  extends Pick<ClaimRequest, 'capacityByOrigin' | 'defaultCapacity' | 'capacityByBacklog' | 'projects' | 'unproven'> {
  slots: number;
  bytes: number;
  /** The part of each budget and of the windows. */
  held: { all: BudgetOffer; unproven: BudgetOffer; silent: BudgetOffer; windows: WindowOffer };
}

const NOTHING: Readonly<Size> = { count: 0, bytes: 0 };

interface LineShare extends Size, Share {
  projectId: ProjectId;
  origin: string;
  /** Silent attempts that have an outcome, which is being saved. */
  over: number;
}

const NO_SHARE: Readonly<Share & Size> = { count: 0, bytes: 0, silent: 0 };

/** What a project may still add: slots, bytes, and places among the silent attempts. */
interface Addable extends Size {
  places: number;
}

/** Whose share keeps a backlog from starting another attempt (P14). */
export type Held = 'project' | 'unproven' | 'origin';

export class InFlight {
  readonly #all: Budget;
  /** The part of `#all` that unproven backlogs use. */
  readonly #unproven: Budget;
  /** Silent attempts, and all attempts of unproven backlogs, which may become silent. Their bytes count in the other budgets. */
  readonly #silent: Budget;
  readonly #windows: EndpointWindows;
  readonly #proven: EndpointHealth;
  readonly #sent = new SentAttempts();
  readonly #backlogs = new Shares<BacklogKey, LineShare>();
  readonly #heavyBytes: number;
  #offers = 0;

  /** Calls `onProof` when a backlog becomes proven, and when it becomes unproven. */
  constructor(
    settings: Pick<EngineSettings, 'inFlightMax' | 'inFlightPerOriginMax' | 'inFlightBytesMax' | 'silentMax'>,
    onProof: (backlog: BacklogKey, isProven: boolean) => void = () => {},
  ) {
    const { inFlightMax: count, inFlightBytesMax: bytes, silentMax = SILENT_TIMES_SLOTS * count } = settings;
    this.#windows = new EndpointWindows(settings.inFlightPerOriginMax);
    this.#all = new Budget({ count, bytes });
    this.#unproven = new Budget({ count: half(count), bytes: half(bytes) });
    this.#silent = new Budget({ count: silentMax, bytes });
    this.#heavyBytes = bytes * HEAVY_SHARE;
    this.#proven = new EndpointHealth((backlog, isProven) => {
      const share = this.#backlogs.find(backlog);
      if (share) {
        const sign = isProven ? -1 : 1;
        const slots = sign * (share.count - share.silent);
        this.#unproven.use(share.projectId, slots, sign * share.bytes);
        this.#silent.use(share.projectId, slots, 0);
      }
      onProof(backlog, isProven);
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

  /** Not positive when the bytes are used up. */
  get freeBytes(): number {
    return this.#all.freeBytes;
  }

  countOf(backlog: BacklogKey): number {
    return this.#backlogs.find(backlog)?.count ?? 0;
  }

  countOfProject(projectId: ProjectId): number {
    return this.slotsOfProject(projectId) + this.#silent.countOf(projectId) - this.#unproven.countOf(projectId);
  }

  slotsOfProject(projectId: ProjectId): number {
    return this.#all.countOf(projectId);
  }

  isProven(backlog: BacklogKey): boolean {
    return this.#proven.has(backlog);
  }

  /** How many more attempts the project may start, and how many of these in unproven backlogs. */
  roomsOfProject(projectId: ProjectId): { all: number; unproven: number } {
    const { count: all } = this.#addableBy(projectId, true);
    const { count, places } = this.#addableBy(projectId, false);
    return { all, unproven: Math.min(count, places) };
  }

  /** How many more attempts of backlogged messages `backlog` may start. */
  roomOf(backlog: BacklogKey): number {
    return Math.min(this.#windows.roomOfBacklog(parseBacklogKey(backlog).origin), this.roomOfNew(backlog));
  }

  /** How many more attempts of new messages, which no backlog precedes, `backlog` may start. */
  roomOfNew(backlog: BacklogKey): number {
    return this.#roomBeside(backlog, NOTHING);
  }

  /** Whether `backlog` may start another attempt when one of its own, of `bytes`, ends; not while it must have fewer attempts. */
  mayHandOff(backlog: BacklogKey, bytes: number): boolean {
    return this.#roomBeside(backlog, { count: 1, bytes }) > 0;
  }

  /** Whose share keeps `backlog` from starting another attempt (P14); `undefined`: no share does, or the worker is full. */
  whatHolds(backlog: BacklogKey): Held | undefined {
    const { projectId, origin } = parseBacklogKey(backlog);
    if (this.isFull) return undefined;
    if (this.#windows.roomOfBacklog(origin) === 0) return 'origin';
    const { all, unproven } = this.roomsOfProject(projectId);
    if (all === 0) return 'project';
    if (unproven === 0 && !this.isProven(backlog)) return 'unproven';
    return this.roomOf(backlog) === 0 ? 'origin' : undefined;
  }

  /** Whether the attempts to `origin` ended without an answer so often that it may have only the fewest at a time. */
  isHeldBack(origin: string): boolean {
    return this.#windows.isHeldBack(origin);
  }

  /**
   * Sets half of the free slots and bytes aside for a claim of up to `slotsMax` messages that serves `backlogs`. The other half is for
   * new messages and other claims, until this claim is answered: so together they never exceed a limit. The claim gets an odd slot.
   */
  offer(slotsMax: number, backlogs: readonly BacklogKey[] = []): Offer {
    const slots = Math.min(slotsMax, half(this.freeSlots));
    const served = new Set(backlogs.map((backlog) => parseBacklogKey(backlog).origin));
    const windows = this.#windows.offer(slots, this.freeSlots, served);
    const capacityByBacklog = this.#roomsOfBusyBacklogs(windows);
    const all = this.#all.offer(slotsMax);
    const unproven = this.#unproven.offer(slotsMax);
    const silent = this.#silent.offer(slotsMax);
    const { capacityByOrigin, defaultCapacity } = windows;
    const held = { all, unproven, silent, windows };
    const offer: Offer = { slots, bytes: all.bytes, capacityByOrigin, defaultCapacity, capacityByBacklog, held };
    if (isLess(all, slots)) offer.projects = roomsOf(all);
    const ofUnproven = smaller(unproven, silent);
    if (isLess(ofUnproven, slots))
      offer.unproven = { ...roomsOf(ofUnproven), slots: ofUnproven.slots, proven: this.#proven.all };
    this.#offers += 1;
    return offer;
  }

  /** The claim is answered, and what it took has entered or is about to. */
  endOffer({ held }: Offer): void {
    this.#offers -= 1;
    this.#windows.endOffer(held.windows);
    this.#all.endOffer(held.all);
    this.#unproven.endOffer(held.unproven);
    this.#silent.endOffer(held.silent);
  }

  setAside(bytesMax: number): number {
    return this.#all.setAside(bytesMax);
  }

  putBack(bytes: number): void {
    this.#all.putBack(bytes);
  }

  /** Whether one more message of `bytes` fits. One always fits when nothing is in flight. */
  hasSpace(bytes: number): boolean {
    const isEmpty = this.count === 0 && this.#offers === 0;
    return isEmpty || (this.freeSlots > 0 && bytes <= this.freeBytes);
  }

  enter(backlog: BacklogKey, bytes: number): void {
    this.#change(backlog, this.#shareOf(backlog), { count: 1, bytes, silent: 0 });
  }

  leave(backlog: BacklogKey, bytes: number): void {
    const share = this.#shareOf(backlog);
    // The attempts of a backlog are interchangeable. When none has a slot, a silent one ends.
    const isSilent = share.over > 0 || share.silent === share.count;
    if (isSilent) share.over = Math.max(0, share.over - 1);
    this.#change(backlog, share, { count: -1, bytes: -bytes, silent: isSilent ? -1 : 0 });
  }

  /** An attempt is sent. Times are elapsed ones. `noteOver` must follow, before its outcome is noted. */
  noteSent(backlog: BacklogKey, atMs: Millis): Sent {
    const sent = { backlog, atMs, checkAtMs: atMs + SILENT_AFTER_MS, isSilent: false, isOver: false };
    this.#sent.push(sent);
    return sent;
  }

  /** The attempt has an outcome. A silent attempt needs no slot again until the outcome is saved. */
  noteOver(sent: Sent): void {
    sent.isOver = true;
    const share = sent.isSilent ? this.#backlogs.find(sent.backlog) : undefined;
    if (share && share.over < share.silent) share.over += 1;
  }

  /** The endpoint shows activity during an attempt. */
  noteHeard(backlog: BacklogKey, atMs: Millis): void {
    this.#proven.noteHeard(backlog, atMs);
  }

  /** An attempt ended with an answer, good or bad. */
  noteAnswer(backlog: BacklogKey, atMs: Millis, status = 200): void {
    this.#proven.noteAnswer(backlog, atMs);
    this.#windows.noteAnswer(parseBacklogKey(backlog).origin, status < 500 && status !== 429);
  }

  /** An attempt ended without an answer. Returns whether the origin has now reached the smallest window. */
  noteNoAnswer(backlog: BacklogKey, isTimeout = false): boolean {
    if (isTimeout) this.#proven.noteTimeout(backlog);
    return this.#windows.noteNoAnswer(parseBacklogKey(backlog).origin);
  }

  /** When the next attempt may become silent, as elapsed time. */
  get silentAtMs(): Millis | undefined {
    return this.#sent.first?.checkAtMs;
  }

  /** Takes the slots of attempts that have become silent. Call it before slots are given out. */
  findSilent(nowMs: Millis): void {
    for (let sent = this.#sent.first; sent !== undefined && sent.checkAtMs <= nowMs; sent = this.#sent.first) {
      this.#proven.noteSilent(sent.backlog, sent.atMs);
      this.#sent.shift();
      sent.isSilent = this.#giveUpSlot(sent.backlog);
      if (sent.isSilent) continue;
      sent.checkAtMs = nowMs + SILENT_AFTER_MS;
      this.#sent.push(sent);
    }
  }

  /** False when there is no place among the silent attempts, or no attempt of the backlog has a slot. */
  #giveUpSlot(backlog: BacklogKey): boolean {
    const share = this.#backlogs.find(backlog);
    if (!share || share.silent === share.count) return false;
    const hasPlace = this.isProven(backlog)
      ? share.silent < this.#silent.roomOf(share.projectId).count
      : !this.#silent.isExceeded;
    if (hasPlace) this.#change(backlog, share, { count: 0, bytes: 0, silent: 1 });
    return hasPlace;
  }

  #shareOf(backlog: BacklogKey): LineShare {
    return this.#backlogs.find(backlog) ?? { ...parseBacklogKey(backlog), count: 0, bytes: 0, silent: 0, over: 0 };
  }

  /** Changes the share of the backlog, and charges the budgets and the window for the difference. */
  #change(backlog: BacklogKey, share: LineShare, { count, bytes, silent }: Share & Size): void {
    const { projectId, origin } = share;
    const slots = count - silent;
    this.#all.use(projectId, slots, bytes);
    if (!this.isProven(backlog)) this.#unproven.use(projectId, slots, bytes);
    this.#silent.use(projectId, this.isProven(backlog) ? silent : count, 0);
    this.#windows.add(origin, count, silent);
    share.count += count;
    share.bytes += bytes;
    share.silent += silent;
    this.#backlogs.keep(backlog, share, share.bytes >= this.#heavyBytes);
  }

  /** How many more attempts `backlog` may start once `ended`, which is its own, is over. */
  #roomBeside(backlog: BacklogKey, ended: Size): number {
    const { projectId, origin } = parseBacklogKey(backlog);
    const addable = this.#addableBy(projectId, this.isProven(backlog), ended);
    const share = this.#backlogs.find(backlog) ?? NO_SHARE;
    return Math.min(this.#windows.roomOf(origin, ended.count), roomWithin(addable, share, ended));
  }

  /** What the project may still add in proven or in unproven backlogs, once `ended` is over. */
  #addableBy(projectId: ProjectId, isProven: boolean, ended = NOTHING): Addable {
    const all = this.#all.roomOf(projectId, ended);
    if (isProven) return { ...all, places: Infinity };
    const unproven = this.#unproven.roomOf(projectId, ended);
    const { count: places } = this.#silent.roomOf(projectId, { count: ended.count, bytes: 0 });
    return { count: Math.min(all.count, unproven.count), bytes: Math.min(all.bytes, unproven.bytes), places };
  }

  /** The rooms of backlogs that have less room within their project than their origin has. */
  #roomsOfBusyBacklogs({ slots, capacityByOrigin, defaultCapacity }: WindowOffer): Record<BacklogKey, number> {
    const capacityByBacklog: Record<BacklogKey, number> = {};
    const addable = new Map<string, Addable>();
    for (const [backlog, share] of this.#backlogs.busy) {
      const isProven = this.isProven(backlog);
      const name = `${share.projectId} ${isProven}`;
      const ofProject = addable.get(name) ?? this.#addableBy(share.projectId, isProven);
      addable.set(name, ofProject);
      const room = half(roomWithin(ofProject, share, NOTHING));
      if (room < (capacityByOrigin[share.origin] ?? Math.min(slots, defaultCapacity)))
        capacityByBacklog[backlog] = room;
    }
    return capacityByBacklog;
  }
}

/** How many more attempts a backlog with `share` may start, when its project may still add `addable`. */
function roomWithin(addable: Addable, share: Share & Size, ended: Size): number {
  const count = share.count - ended.count;
  if (count > 0 && share.bytes - ended.bytes >= addable.bytes) return 0;
  return Math.max(0, Math.min(addable.count - Math.max(0, count - share.silent), addable.places - count));
}

/** The smaller room of two budgets, by project. */
function smaller(a: BudgetOffer, b: BudgetOffer): BudgetOffer {
  const capacityByProject: Record<ProjectId, number> = {};
  for (const key of Object.keys({ ...a.capacityByProject, ...b.capacityByProject })) {
    const projectId = Number(key);
    const rooms = [a, b].map((offer) => offer.capacityByProject[projectId] ?? offer.defaultCapacity);
    capacityByProject[projectId] = Math.min(...rooms);
  }
  const defaultCapacity = Math.min(a.defaultCapacity, b.defaultCapacity);
  return { capacityByProject, defaultCapacity, slots: Math.min(a.slots, b.slots), bytes: a.bytes };
}

function roomsOf({
  capacityByProject,
  defaultCapacity,
}: BudgetOffer): Pick<BudgetOffer, 'capacityByProject' | 'defaultCapacity'> {
  return { capacityByProject, defaultCapacity };
}

/** Whether some project has less room than `slots`. */
function isLess({ slots: offered, capacityByProject, defaultCapacity }: BudgetOffer, slots: number): boolean {
  return Math.min(offered, defaultCapacity, ...Object.values(capacityByProject)) < slots;
}

export interface Sent {
  readonly backlog: BacklogKey;
  readonly atMs: Millis;
  /** When to check whether it is silent, as elapsed time. */
  checkAtMs: Millis;
  /** It has given up its slot. */
  isSilent: boolean;
  isOver: boolean;
}

/** Entries that have left the queue are cut off in batches of this many. */
const CUT = 1_024;

/**
 * Attempts that have been sent and have no outcome yet, oldest first. One that is over leaves the queue when it is first: a map to
 * which every attempt adds an entry and from which it deletes the entry again is rehashed all the time.
 */
class SentAttempts {
  #queue: Sent[] = [];
  #first = 0;

  get first(): Sent | undefined {
    while (this.#queue[this.#first]?.isOver) this.shift();
    return this.#queue[this.#first];
  }

  push(sent: Sent): void {
    this.#queue.push(sent);
  }

  /** Removes the first. */
  shift(): void {
    this.#first += 1;
    if (this.#first < CUT) return;
    this.#queue = this.#queue.slice(this.#first);
    this.#first = 0;
  }
}
