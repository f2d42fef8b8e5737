/**
 * How does a project's log reach those who watch it? While somebody does, one read in each half second finds what is
 * new, whichever worker wrote it, and all watchers of the project are told of it. While nobody does, nothing is read.
 */
import type { Store } from '../../store/store.ts';
import { Alarm } from '../loops/alarm.ts';
import type { Millis, ProjectId } from '../model.ts';
import type { Clock } from '../ports.ts';
import { ProjectAway, StoreUnavailable } from '../store-errors.ts';
import type { LiveEntry, LogPosition } from '../stores.ts';
import { LiveWindow, REMEMBERED_MAX } from './window.ts';

/** From the end of one read to the next. */
const EVERY_MS: Millis = 500;
/** Entries of one read. */
export const READ_MAX = 500;
/** Full reads that follow each other at once. So a burst is told whole, and of an endless flood a thousand a second. */
const FULL_READS_MAX = 8;

/** Whoever looks on while a project's log grows. All of this is called in its order. */
export interface LogWatcher {
  /** Every entry that is committed from now on is told. `last`: the last one of those before. */
  begin(last: LogPosition | undefined): void;
  /** In the order of the log, as far as commits are: an entry may come after later ones. None comes twice. */
  tell(entries: readonly LiveEntry[]): void;
  /** So many entries were passed over, since there were too many. */
  lose(count: number): void;
  /** The log is not read here any more: it may be in another cell now. Nothing is told after this. */
  leave(): void;
}

type Logs = Pick<Store['logs'], 'listLogsAfter' | 'newestLogs'>;

/** The feeds of all projects that are watched. */
export class LiveFeeds {
  readonly #logs: Logs;
  readonly #clock: Clock;
  readonly #byProject = new Map<ProjectId, Feed>();

  constructor(logs: Logs, clock: Clock) {
    this.#logs = logs;
    this.#clock = clock;
  }

  /** Returns how to stop; after that, `watcher` is told nothing. */
  watch(projectId: ProjectId, watcher: LogWatcher): () => void {
    const feed = this.#byProject.get(projectId) ?? new Feed(projectId, this.#logs, this.#clock, () => forget());
    const forget = (): void => {
      if (!feed.isWatched && this.#byProject.get(projectId) === feed) this.#byProject.delete(projectId);
    };
    this.#byProject.set(projectId, feed);
    feed.add(watcher);
    return () => {
      feed.remove(watcher);
      forget();
    };
  }
}

class Feed {
  readonly #projectId: ProjectId;
  readonly #logs: Logs;
  readonly #clock: Clock;
  readonly #alarm: Alarm;
  readonly #watchers = new Set<LogWatcher>();
  readonly #onLeft: () => void;
  #window: LiveWindow | undefined;
  /** Full reads in a row. */
  #fullReads = 0;

  /** `onLeft`: called when it has no watchers any more, since the project is gone. */
  constructor(projectId: ProjectId, logs: Logs, clock: Clock, onLeft: () => void) {
    this.#projectId = projectId;
    this.#logs = logs;
    this.#clock = clock;
    this.#onLeft = onLeft;
    this.#alarm = new Alarm(clock, () => void this.#turn(), 'outside');
    this.#alarm.setIn(0);
  }

  get isWatched(): boolean {
    return this.#watchers.size > 0;
  }

  add(watcher: LogWatcher): void {
    this.#watchers.add(watcher);
    if (this.#window) watcher.begin(this.#window.last);
  }

  remove(watcher: LogWatcher): void {
    this.#watchers.delete(watcher);
    if (!this.isWatched) this.#alarm.cancel();
  }

  async #turn(): Promise<void> {
    let isFull = false;
    try {
      isFull = await this.#read();
    } catch (error) {
      if (error instanceof ProjectAway && error.isGone) return this.#leave();
      if (!(error instanceof StoreUnavailable)) throw error; // the next read finds the same
    }
    if (this.isWatched) this.#alarm.setIn(isFull ? 0 : EVERY_MS);
  }

  #leave(): void {
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    this.#onLeft();
    for (const watcher of watchers) watcher.leave();
  }

  /** Returns whether more is to be read at once. */
  async #read(): Promise<boolean> {
    const projectId = this.#projectId;
    const nowMs = this.#clock.nowMs();
    const toMs = LiveWindow.toMs(nowMs);
    if (!this.#window || this.#window.isAheadOf(nowMs)) return this.#begin(nowMs);
    const window = this.#window;
    const { from: after, known: except } = window;
    const entries = await this.#logs.listLogsAfter({ projectId, after, toMs, except, count: READ_MAX });
    window.know(entries, nowMs);
    if (entries.length > 0) for (const watcher of this.#watchers) watcher.tell(entries);
    this.#fullReads = entries.length < READ_MAX ? 0 : this.#fullReads + 1;
    if (this.#fullReads < FULL_READS_MAX) return this.#fullReads > 0;
    await this.#passOver(window, nowMs);
    return false;
  }

  async #begin(nowMs: Millis): Promise<boolean> {
    const isFirst = !this.#window;
    const toMs = LiveWindow.toMs(nowMs);
    const newest = { projectId: this.#projectId, toMs, count: REMEMBERED_MAX };
    const { positions } = await this.#logs.newestLogs(newest);
    this.#window = new LiveWindow(positions, nowMs);
    if (isFirst) for (const watcher of this.#watchers) watcher.begin(this.#window.last);
    return false;
  }

  /** More is written than anybody could read: goes on at the end of the log. */
  async #passOver(window: LiveWindow, nowMs: Millis): Promise<void> {
    const place = { projectId: this.#projectId, toMs: LiveWindow.toMs(nowMs), count: REMEMBERED_MAX };
    const { positions, countAfter } = await this.#logs.newestLogs({ ...place, after: window.from });
    const count = countAfter - window.known.length;
    this.#window = new LiveWindow(positions, nowMs);
    if (count > 0) for (const watcher of this.#watchers) watcher.lose(count);
  }
}
