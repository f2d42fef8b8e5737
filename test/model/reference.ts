/**
 * A minimal reference implementation of the messaging interface: no store, no indexes, no concurrency. Time passes in ticks.
 * Commands of a client run at the start of a tick, and then everything that is due in it.
 */

/** How the endpoint of a message behaves: `slow` answers some ticks later, `flaky` fails once and is retried a tick later. */
export type Kind = 'ok' | 'bad' | 'slow' | 'flaky';

export interface Key {
  name: string;
  parallelism: number | undefined;
  rate: number | undefined;
  isPaused: boolean;
  isParallelismPinned: boolean;
  /** The window lasts one tick. */
  windowTick: number | undefined;
  windowCount: number;
}

export interface Queue {
  name: string;
  parallelism: number;
  isPaused: boolean;
  isDeleted: boolean;
}

export interface Wish {
  kind: Kind;
  delayTicks: number;
  queueName?: string;
  key?: { name: string; parallelism?: number; rate?: number };
  deduplicationId?: string;
}

export interface Item {
  /** Orders messages by acceptance. */
  number: number;
  wish: Wish;
  /** One letter a log entry; see the simulation's `histories.ts`. */
  letters: string;
  state: 'waiting' | 'inFlight' | 'finished' | 'dead';
  publishedTick: number;
  /** With its fraction: what was planned by a later command comes a little earlier in the tick. */
  dueTick: number;
  retried: number;
  queue: Queue | undefined;
  hasPermit: boolean;
  endTick: number;
}

/** The window of deduplication. */
export const DEDUPLICATION_TICKS = 10;
/** How long `slow` endpoints take. */
export const SLOW_TICKS = 3;
/** Each command comes a little earlier in its tick than the one before. */
const EARLIER = 0.001;
/** When in its tick a server that was restarted has taken up its work. */
const AFTER_RESTART = 0.4;

export class Reference {
  readonly items: Item[] = [];
  readonly queues = new Map<string, Queue>();
  readonly keys = new Map<string, Key>();
  readonly groups = new Map<string, Set<string>>();
  tick = 0;
  readonly #takenIds = new Map<string, { item: Item; untilTick: number }>();
  /** Whether what is due in this tick has its turn; before that, windows of the tick before are still open. */
  #isDueTime = false;

  publish(wish: Wish): Item {
    const taken = wish.deduplicationId === undefined ? undefined : this.#takenIds.get(wish.deduplicationId);
    if (taken && this.tick <= taken.untilTick) return taken.item;
    const queue = wish.queueName === undefined ? undefined : this.#queue(wish.queueName);
    const item: Item = {
      number: this.items.length,
      wish,
      letters: 'C',
      state: 'waiting',
      publishedTick: this.tick,
      dueTick: this.tick + wish.delayTicks - EARLIER * this.tick,
      retried: 0,
      queue,
      hasPermit: false,
      endTick: Infinity,
    };
    this.items.push(item);
    if (wish.key) this.#follow(wish.key);
    if (wish.deduplicationId !== undefined) {
      this.#takenIds.set(wish.deduplicationId, { item, untilTick: this.tick + DEDUPLICATION_TICKS });
    }
    return item;
  }

  cancel(item: Item): void {
    if (item.state === 'waiting' || item.state === 'inFlight') this.#end(item, 'QX');
  }

  saveQueue(name: string, parallelism: number, isPaused: boolean): void {
    Object.assign(this.#queue(name), { parallelism, isPaused });
  }

  pauseQueue(name: string, isPaused: boolean): 'saved' | 'missing' {
    const queue = this.queues.get(name);
    if (queue) queue.isPaused = isPaused;
    return queue ? 'saved' : 'missing';
  }

  deleteQueue(name: string): void {
    const queue = this.queues.get(name);
    if (!queue) return;
    Object.assign(queue, { isDeleted: true, isPaused: true });
    this.queues.delete(name);
    for (const item of this.items) if (item.queue === queue) this.cancel(item);
  }

  pauseKey(name: string, isPaused: boolean): void {
    if (isPaused || this.keys.has(name)) this.#key(name).isPaused = isPaused;
  }

  pinParallelism(name: string, parallelism: number): void {
    Object.assign(this.#key(name), { parallelism, isParallelismPinned: true });
  }

  unpinParallelism(name: string): void {
    const key = this.keys.get(name);
    if (key) key.isParallelismPinned = false;
  }

  /** Takes the message out of the DLQ and publishes it anew, without its delay. */
  retryDead(item: Item): Item {
    item.state = 'finished';
    const { deduplicationId: _id, ...wish } = item.wish;
    return this.publish({ ...wish, delayTicks: 0 });
  }

  deleteDead(item: Item): void {
    item.state = 'finished';
  }

  /** The process dies and comes back within the tick: its attempts start again, behind what is due by then. */
  restart(): void {
    for (const item of this.items) {
      if (item.state !== 'inFlight') continue;
      Object.assign(item, { state: 'waiting', dueTick: this.tick + AFTER_RESTART, endTick: Infinity });
    }
  }

  /** All starts that are possible now. */
  settle(): void {
    while (this.#giveSlots() || this.#startOne());
  }

  /** Lets happen what is due in this tick; to be called after what the client did. */
  finishTick(): void {
    this.#isDueTime = true;
    for (const item of this.items) if (item.state === 'inFlight' && item.endTick <= this.tick) this.#end(item, 'D');
    this.settle();
  }

  nextTick(): void {
    this.tick += 1;
    this.#isDueTime = false;
  }

  lagOf(queue: Queue): number {
    return this.items.filter((item) => item.queue === queue && isUnfinished(item)).length;
  }

  inFlightOf(key: Key): number {
    return this.items.filter((item) => item.state === 'inFlight' && item.wish.key?.name === key.name).length;
  }

  waitListOf(key: Key): Item[] {
    return this.items
      .filter((item) => item.state === 'waiting' && item.wish.key?.name === key.name && this.isReady(item))
      .toSorted((a, b) => a.dueTick - b.dueTick || a.number - b.number);
  }

  /** Whether nothing but a limit keeps it. */
  isReady(item: Item): boolean {
    const dueTick = Math.round(item.dueTick);
    const isDue = dueTick < this.tick || (dueTick === this.tick && (this.#isDueTime || this.#isNew(item)));
    return isDue && (item.queue === undefined || (item.hasPermit && !item.queue.isPaused));
  }

  isWindowOpen(key: Key): boolean {
    if (key.windowTick === undefined) return false;
    return this.tick <= key.windowTick || (this.tick === key.windowTick + 1 && !this.#isDueTime);
  }

  /** Published without a delay in this very tick. */
  #isNew({ publishedTick, wish, retried }: Item): boolean {
    return publishedTick === this.tick && wish.delayTicks === 0 && retried === 0;
  }

  #queue(name: string): Queue {
    const queue = this.queues.get(name) ?? { name, parallelism: 1, isPaused: false, isDeleted: false };
    this.queues.set(name, queue);
    return queue;
  }

  #key(name: string): Key {
    const key = this.keys.get(name) ?? {
      name,
      parallelism: undefined,
      rate: undefined,
      isPaused: false,
      isParallelismPinned: false,
      windowTick: undefined,
      windowCount: 0,
    };
    this.keys.set(name, key);
    return key;
  }

  #follow({ name, parallelism, rate }: NonNullable<Wish['key']>): void {
    const key = this.#key(name);
    if (!key.isParallelismPinned) key.parallelism = parallelism;
    key.rate = rate;
  }

  #giveSlots(): boolean {
    for (const queue of this.queues.values()) {
      const ofQueue = this.items.filter((item) => item.queue === queue && isUnfinished(item));
      const next = ofQueue.find(({ hasPermit }) => !hasPermit);
      if (!next || queue.isPaused) continue;
      if (ofQueue.filter(({ hasPermit }) => hasPermit).length >= queue.parallelism) continue;
      next.hasPermit = true;
      return true;
    }
    return false;
  }

  #startOne(): boolean {
    const ready = this.items
      .filter((item) => item.state === 'waiting' && this.isReady(item) && this.#isAllowed(item))
      .toSorted((a, b) => a.dueTick - b.dueTick || a.number - b.number);
    const [first] = ready;
    if (first) this.#start(first);
    return first !== undefined;
  }

  #isAllowed({ wish }: Item): boolean {
    const key = wish.key && this.keys.get(wish.key.name);
    if (!key) return true;
    if (key.isPaused || this.inFlightOf(key) >= (key.parallelism ?? Infinity)) return false;
    return key.rate === undefined || !this.isWindowOpen(key) || key.windowCount < key.rate;
  }

  #start(item: Item): void {
    const key = item.wish.key && this.keys.get(item.wish.key.name);
    if (key?.rate !== undefined) {
      if (this.isWindowOpen(key)) key.windowCount += 1;
      else Object.assign(key, { windowTick: this.tick, windowCount: 1 });
    }
    item.letters += 'A';
    switch (item.wish.kind) {
      case 'ok':
        return this.#end(item, 'D');
      case 'bad':
        this.#end(item, 'EF');
        item.state = 'dead';
        return;
      case 'slow':
        Object.assign(item, { state: 'inFlight', endTick: this.tick + SLOW_TICKS });
        return;
      case 'flaky':
        if (item.retried > 0) return this.#end(item, 'D');
        item.letters += 'ER';
        Object.assign(item, { retried: 1, dueTick: this.tick + 1 });
    }
  }

  #end(item: Item, letters: string): void {
    item.letters += letters;
    item.state = 'finished';
  }
}

export function isUnfinished({ state }: Item): boolean {
  return state === 'waiting' || state === 'inFlight';
}
