/**
 * Limits the attempts of this worker: which backlog may start another attempt. These are the fair, bounded shares of
 * promise P9:
 *
 * - All attempts share the slots and body bytes of the worker, by project (`Budget`).
 * - Unknown backlogs, whose endpoints have not responded recently, share half of the slots and bytes by the same rule.
 *   The other half is reserved for healthy backlogs.
 * - An attempt without an outcome after two seconds is silent: it gives up its slot and counts against a larger limit,
 *   the silent budget, but keeps its body bytes. An attempt of an unknown backlog counts against the silent budget from
 *   its start. So hanging endpoints use up silent attempts and no slots, whatever their number and their timeouts.
 * - Each endpoint has a concurrency window (`EndpointWindows`).
 *
 * Within its project, a backlog may start another attempt while it has fewer attempts and bytes in flight than the
 * project has capacity left. So one slow origin leaves half of the capacity to the others, and a thousand slow origins
 * keep only a few slots each.
 */
import type { ClaimRequest } from '../dispatch/claims.ts';
import type { Millis, ProjectId } from '../model.ts';
import type { EngineSettings } from '../settings.ts';
import { type BacklogKey, parseBacklogKey } from './backlog-key.ts';
import { Budget, type BudgetOffer, half, type Size } from './budget.ts';
import { EndpointHealth } from './endpoint-health.ts';
import { EndpointWindows, type Load, Loads, type WindowOffer } from './endpoint-windows.ts';

/** An attempt without an outcome is silent this long after it was sent. */
export const SILENT_AFTER_MS = 2_000;
/** The limit of silent attempts, as a multiple of the slots, if the settings have none. */
const SILENT_TIMES_SLOTS = 8;
/**
 * If a backlog has this fraction of all bytes in flight, claims may limit the backlog even if all of its attempts are
 * silent.
 */
const HEAVY_SHARE = 1 / 64;

/**
 * The slots and bytes that are reserved for a claim until the result of the claim is known, and the limits of the claim.
 */
export interface Offer
  extends Pick<ClaimRequest, 'capacityByOrigin' | 'defaultCapacity' | 'capacityByBacklog' | 'projects' | 'unknown'> {
  slots: number;
  bytes: number;
  /** The part of each budget, and of the windows, that is reserved until `endOffer`. */
  reserved: { all: BudgetOffer; unknown: BudgetOffer; silent: BudgetOffer; windows: WindowOffer };
}

const NOTHING: Readonly<Size> = { count: 0, bytes: 0 };

interface BacklogLoad extends Size, Load {
  projectId: ProjectId;
  origin: string;
  /** Silent attempts whose outcome is known and being saved. */
  withOutcome: number;
}

const NO_LOAD: Readonly<Load & Size> = { count: 0, bytes: 0, silent: 0 };

/** How much more a project may use: slots, bytes and silent attempts. */
interface ProjectCapacity extends Size {
  silent: number;
}

/** The limit that keeps a backlog from starting another attempt (P14). */
export type LimitReason = 'project' | 'unknown' | 'origin';

export class InFlight {
  readonly #all: Budget;
  /** The part of `#all` that unknown backlogs use. */
  readonly #unknown: Budget;
  /**
   * Silent attempts, and all attempts of unknown backlogs, which may become silent. Bytes count only in the other
   * budgets.
   */
  readonly #silent: Budget;
  readonly #windows: EndpointWindows;
  readonly #health: EndpointHealth;
  readonly #sent = new SentQueue();
  readonly #backlogs = new Loads<BacklogKey, BacklogLoad>();
  readonly #heavyBytes: number;
  #offers = 0;

  /** Calls `onHealthChange` when a backlog becomes healthy or unknown. */
  constructor(
    settings: Pick<EngineSettings, 'inFlightMax' | 'inFlightPerOriginMax' | 'inFlightBytesMax' | 'silentMax'>,
    onHealthChange: (backlog: BacklogKey, isHealthy: boolean) => void = () => {},
  ) {
    const { inFlightMax: count, inFlightBytesMax: bytes, silentMax = SILENT_TIMES_SLOTS * count } = settings;
    this.#windows = new EndpointWindows(settings.inFlightPerOriginMax);
    this.#all = new Budget({ count, bytes });
    this.#unknown = new Budget({ count: half(count), bytes: half(bytes) });
    this.#silent = new Budget({ count: silentMax, bytes });
    this.#heavyBytes = bytes * HEAVY_SHARE;
    this.#health = new EndpointHealth((backlog, isHealthy) => {
      const load = this.#backlogs.find(backlog);
      if (load) {
        const sign = isHealthy ? -1 : 1;
        const slots = sign * (load.count - load.silent);
        this.#unknown.use(load.projectId, slots, sign * load.bytes);
        this.#silent.use(load.projectId, slots, 0);
      }
      onHealthChange(backlog, isHealthy);
    });
  }

  /** All attempts, with and without slots. */
  get count(): number {
    return this.#all.count + this.#silent.count - this.#unknown.count;
  }

  /** The `count` projects with the most attempts, each with their number. */
  busiest(count: number): [ProjectId, number][] {
    const projects = new Set([...this.#all.projects, ...this.#silent.projects]);
    const all = [...projects].map((projectId): [ProjectId, number] => [projectId, this.countOfProject(projectId)]);
    return all.toSorted(([, a], [, b]) => b - a).slice(0, count);
  }

  /** Whether the worker has no slot or no bytes left. */
  get isFull(): boolean {
    return this.freeSlots <= 0 || this.freeBytes <= 0;
  }

  get freeSlots(): number {
    return this.#all.freeSlots;
  }

  /** The free bytes; zero or negative when the bytes are used up. */
  get freeBytes(): number {
    return this.#all.freeBytes;
  }

  countOf(backlog: BacklogKey): number {
    return this.#backlogs.find(backlog)?.count ?? 0;
  }

  countOfProject(projectId: ProjectId): number {
    return this.slotsOfProject(projectId) + this.#silent.countOf(projectId) - this.#unknown.countOf(projectId);
  }

  slotsOfProject(projectId: ProjectId): number {
    return this.#all.countOf(projectId);
  }

  isHealthy(backlog: BacklogKey): boolean {
    return this.#health.isHealthy(backlog);
  }

  /** How many more attempts the project may start in all, and how many in unknown backlogs. */
  capacityOfProject(projectId: ProjectId): { all: number; unknown: number } {
    const { count: all } = this.#capacityOfProject(projectId, true);
    const { count, silent } = this.#capacityOfProject(projectId, false);
    return { all, unknown: Math.min(count, silent) };
  }

  /** How many more attempts of backlogged messages `backlog` may start. */
  capacityOf(backlog: BacklogKey): number {
    return Math.min(this.#windows.backlogCapacityOf(parseBacklogKey(backlog).origin), this.capacityForNew(backlog));
  }

  /** How many more attempts of new messages `backlog` may start while no other messages wait in this backlog. */
  capacityForNew(backlog: BacklogKey): number {
    return this.#capacityAfter(backlog, NOTHING);
  }

  /**
   * Whether `backlog` may start another attempt when one of its attempts ends, which has `bytes` in flight. False while
   * the backlog exceeds a limit.
   */
  mayHandOff(backlog: BacklogKey, bytes: number): boolean {
    return this.#capacityAfter(backlog, { count: 1, bytes }) > 0;
  }

  /**
   * Returns the limit that keeps `backlog` from starting another attempt (P14), or undefined if there is no such
   * limit or the worker is full.
   */
  limitReasonOf(backlog: BacklogKey): LimitReason | undefined {
    const { projectId, origin } = parseBacklogKey(backlog);
    if (this.isFull) return undefined;
    if (this.#windows.backlogCapacityOf(origin) === 0) return 'origin';
    const { all, unknown } = this.capacityOfProject(projectId);
    if (all === 0) return 'project';
    if (unknown === 0 && !this.isHealthy(backlog)) return 'unknown';
    return this.capacityOf(backlog) === 0 ? 'origin' : undefined;
  }

  /** Whether so many attempts to `origin` ended without a response that the origin has the smallest window. */
  isHeldBack(origin: string): boolean {
    return this.#windows.isHeldBack(origin);
  }

  /**
   * Reserves half of the free slots and bytes, rounded up, for a claim of up to `slotsMax` messages that serves
   * `backlogs`. Until the result of this claim is known, the other half is for new messages and other claims. So all of
   * them together never exceed a limit.
   */
  offer(slotsMax: number, backlogs: readonly BacklogKey[] = []): Offer {
    const slots = Math.min(slotsMax, half(this.freeSlots));
    const served = new Set(backlogs.map((backlog) => parseBacklogKey(backlog).origin));
    const windows = this.#windows.offer(slots, this.freeSlots, served);
    const capacityByBacklog = this.#capacityOfBusyBacklogs(windows);
    const all = this.#all.offer(slotsMax);
    const unknown = this.#unknown.offer(slotsMax);
    const silent = this.#silent.offer(slotsMax);
    const { capacityByOrigin, defaultCapacity } = windows;
    const reserved = { all, unknown, silent, windows };
    const offer: Offer = { slots, bytes: all.bytes, capacityByOrigin, defaultCapacity, capacityByBacklog, reserved };
    if (isBelow(all, slots)) offer.projects = capacitiesOf(all);
    const ofUnknown = smaller(unknown, silent);
    if (isBelow(ofUnknown, slots))
      offer.unknown = { ...capacitiesOf(ofUnknown), slots: ofUnknown.slots, healthy: this.#health.all };
    this.#offers += 1;
    return offer;
  }

  /**
   * Ends the reservation, because the result of the claim is known. The claimed messages have taken slots or will do so
   * at once.
   */
  endOffer({ reserved }: Offer): void {
    this.#offers -= 1;
    this.#windows.endOffer(reserved.windows);
    this.#all.endOffer(reserved.all);
    this.#unknown.endOffer(reserved.unknown);
    this.#silent.endOffer(reserved.silent);
  }

  reserveBytes(bytesMax: number): number {
    return this.#all.reserveBytes(bytesMax);
  }

  returnBytes(bytes: number): void {
    this.#all.returnBytes(bytes);
  }

  /** Whether one more message of `bytes` fits. A message always fits when nothing is in flight. */
  fits(bytes: number): boolean {
    const isEmpty = this.count === 0 && this.#offers === 0;
    return isEmpty || (this.freeSlots > 0 && bytes <= this.freeBytes);
  }

  enter(backlog: BacklogKey, bytes: number): void {
    this.#change(backlog, this.#loadOf(backlog), { count: 1, bytes, silent: 0 });
  }

  leave(backlog: BacklogKey, bytes: number): void {
    const load = this.#loadOf(backlog);
    // The attempts of a backlog are interchangeable. When none of them has a slot, the attempt that ends is a silent one.
    const isSilent = load.withOutcome > 0 || load.silent === load.count;
    if (isSilent) load.withOutcome = Math.max(0, load.withOutcome - 1);
    this.#change(backlog, load, { count: -1, bytes: -bytes, silent: isSilent ? -1 : 0 });
  }

  /**
   * Notes that an attempt was sent, at an elapsed time. When the attempt ends, `noteOutcome` must be called before
   * `noteResponse` or `noteNoResponse`.
   */
  noteSent(backlog: BacklogKey, sentAtMs: Millis): SentAttempt {
    const sent = { backlog, sentAtMs, checkAtMs: sentAtMs + SILENT_AFTER_MS, isSilent: false, hasOutcome: false };
    this.#sent.push(sent);
    return sent;
  }

  /** The attempt has an outcome. A silent attempt needs no slot while its outcome is being saved. */
  noteOutcome(sent: SentAttempt): void {
    sent.hasOutcome = true;
    const load = sent.isSilent ? this.#backlogs.find(sent.backlog) : undefined;
    if (load && load.withOutcome < load.silent) load.withOutcome += 1;
  }

  /** The endpoint has shown activity during an attempt. */
  noteActivity(backlog: BacklogKey, atMs: Millis): void {
    this.#health.noteActivity(backlog, atMs);
  }

  /** An attempt ended with a response, good or bad. */
  noteResponse(backlog: BacklogKey, atMs: Millis, status = 200): void {
    this.#health.noteResponse(backlog, atMs);
    this.#windows.noteResponse(parseBacklogKey(backlog).origin, status < 500 && status !== 429);
  }

  /**
   * Notes that an attempt ended without a response. Returns whether the origin now has the smallest window because of
   * this.
   */
  noteNoResponse(backlog: BacklogKey, isTimeout = false): boolean {
    if (isTimeout) this.#health.noteTimeout(backlog);
    return this.#windows.noteNoResponse(parseBacklogKey(backlog).origin);
  }

  /** When the next attempt may become silent, as elapsed time. */
  get silentAtMs(): Millis | undefined {
    return this.#sent.first?.checkAtMs;
  }

  /** Frees the slots of attempts that have become silent. Call this method before slots are assigned. */
  findSilent(nowMs: Millis): void {
    for (let sent = this.#sent.first; sent !== undefined && sent.checkAtMs <= nowMs; sent = this.#sent.first) {
      this.#health.noteSilent(sent.backlog, sent.sentAtMs);
      this.#sent.shift();
      sent.isSilent = this.#freeSlotOfSilent(sent.backlog);
      if (sent.isSilent) continue;
      sent.checkAtMs = nowMs + SILENT_AFTER_MS;
      this.#sent.push(sent);
    }
  }

  /** Returns false if the silent budget is used up, or no attempt of the backlog has a slot. */
  #freeSlotOfSilent(backlog: BacklogKey): boolean {
    const load = this.#backlogs.find(backlog);
    if (!load || load.silent === load.count) return false;
    const isAllowed = this.isHealthy(backlog)
      ? load.silent < this.#silent.capacityOf(load.projectId).count
      : !this.#silent.isExceeded;
    if (isAllowed) this.#change(backlog, load, { count: 0, bytes: 0, silent: 1 });
    return isAllowed;
  }

  #loadOf(backlog: BacklogKey): BacklogLoad {
    return (
      this.#backlogs.find(backlog) ?? { ...parseBacklogKey(backlog), count: 0, bytes: 0, silent: 0, withOutcome: 0 }
    );
  }

  /** Changes the load of the backlog, and adds the difference to the budgets and the window. */
  #change(backlog: BacklogKey, load: BacklogLoad, { count, bytes, silent }: Load & Size): void {
    const { projectId, origin } = load;
    const slots = count - silent;
    this.#all.use(projectId, slots, bytes);
    if (!this.isHealthy(backlog)) this.#unknown.use(projectId, slots, bytes);
    this.#silent.use(projectId, this.isHealthy(backlog) ? silent : count, 0);
    this.#windows.add(origin, count, silent);
    load.count += count;
    load.bytes += bytes;
    load.silent += silent;
    this.#backlogs.update(backlog, load, load.bytes >= this.#heavyBytes);
  }

  /** How many more attempts `backlog` may start after `ended`, a part of its own load, has ended. */
  #capacityAfter(backlog: BacklogKey, ended: Size): number {
    const { projectId, origin } = parseBacklogKey(backlog);
    const capacity = this.#capacityOfProject(projectId, this.isHealthy(backlog), ended);
    const load = this.#backlogs.find(backlog) ?? NO_LOAD;
    return Math.min(this.#windows.capacityOf(origin, ended.count), capacityWithin(capacity, load, ended));
  }

  /** How much more the project may use in healthy or in unknown backlogs, after `ended` has ended. */
  #capacityOfProject(projectId: ProjectId, isHealthy: boolean, ended = NOTHING): ProjectCapacity {
    const all = this.#all.capacityOf(projectId, ended);
    if (isHealthy) return { ...all, silent: Infinity };
    const unknown = this.#unknown.capacityOf(projectId, ended);
    const { count: silent } = this.#silent.capacityOf(projectId, { count: ended.count, bytes: 0 });
    return { count: Math.min(all.count, unknown.count), bytes: Math.min(all.bytes, unknown.bytes), silent };
  }

  /** The capacity of each backlog that has less capacity within its project than its origin has. */
  #capacityOfBusyBacklogs({ slots, capacityByOrigin, defaultCapacity }: WindowOffer): Record<BacklogKey, number> {
    const capacityByBacklog: Record<BacklogKey, number> = {};
    const byProject = new Map<string, ProjectCapacity>();
    for (const [backlog, load] of this.#backlogs.busy) {
      const isHealthy = this.isHealthy(backlog);
      const name = `${load.projectId} ${isHealthy}`;
      const capacityOfProject = byProject.get(name) ?? this.#capacityOfProject(load.projectId, isHealthy);
      byProject.set(name, capacityOfProject);
      const capacity = half(capacityWithin(capacityOfProject, load, NOTHING));
      if (capacity < (capacityByOrigin[load.origin] ?? Math.min(slots, defaultCapacity)))
        capacityByBacklog[backlog] = capacity;
    }
    return capacityByBacklog;
  }
}

/**
 * How many more attempts a backlog with `load` may start after `ended` has ended, if its project then has `capacity` left.
 */
function capacityWithin(capacity: ProjectCapacity, load: Load & Size, ended: Size): number {
  const count = load.count - ended.count;
  if (count > 0 && load.bytes - ended.bytes >= capacity.bytes) return 0;
  return Math.max(0, Math.min(capacity.count - Math.max(0, count - load.silent), capacity.silent - count));
}

/** For each project, the smaller of its capacities in two budgets. */
function smaller(a: BudgetOffer, b: BudgetOffer): BudgetOffer {
  const capacityByProject: Record<ProjectId, number> = {};
  for (const key of Object.keys({ ...a.capacityByProject, ...b.capacityByProject })) {
    const projectId = Number(key);
    const capacities = [a, b].map((offer) => offer.capacityByProject[projectId] ?? offer.defaultCapacity);
    capacityByProject[projectId] = Math.min(...capacities);
  }
  const defaultCapacity = Math.min(a.defaultCapacity, b.defaultCapacity);
  return { capacityByProject, defaultCapacity, slots: Math.min(a.slots, b.slots), bytes: a.bytes };
}

function capacitiesOf({
  capacityByProject,
  defaultCapacity,
}: BudgetOffer): Pick<BudgetOffer, 'capacityByProject' | 'defaultCapacity'> {
  return { capacityByProject, defaultCapacity };
}

/** Whether any project has less capacity than `slots`. */
function isBelow({ slots: offered, capacityByProject, defaultCapacity }: BudgetOffer, slots: number): boolean {
  return Math.min(offered, defaultCapacity, ...Object.values(capacityByProject)) < slots;
}

export interface SentAttempt {
  readonly backlog: BacklogKey;
  readonly sentAtMs: Millis;
  /** When to check whether the attempt is silent, as elapsed time. */
  checkAtMs: Millis;
  /** Whether the attempt has given up its slot. */
  isSilent: boolean;
  hasOutcome: boolean;
}

/** The number of entries after which entries that have left the queue are removed from the array together. */
const TRIM_BATCH = 1_024;

/**
 * Attempts that were sent and have no outcome yet, oldest first. An attempt with an outcome leaves the queue once it is
 * the first. The queue is an array, because a map to which every attempt adds an entry and deletes it again is rehashed
 * all the time.
 */
class SentQueue {
  #queue: SentAttempt[] = [];
  #first = 0;

  get first(): SentAttempt | undefined {
    while (this.#queue[this.#first]?.hasOutcome) this.shift();
    return this.#queue[this.#first];
  }

  push(sent: SentAttempt): void {
    this.#queue.push(sent);
  }

  /** Removes the first attempt. */
  shift(): void {
    this.#first += 1;
    if (this.#first < TRIM_BATCH) return;
    this.#queue = this.#queue.slice(this.#first);
    this.#first = 0;
  }
}
