/**
 * Publishes the log of a project to its watchers. While a project is watched, one read every half second finds the new entries,
 * which any worker may have written, and all watchers are notified. Otherwise nothing is read.
 */
import type { Store } from '../../store/store.ts';
import { Alarm } from '../loops/alarm.ts';
import type { Millis, ProjectId } from '../model.ts';
import type { Clock } from '../ports.ts';
import { ProjectAway, StoreUnavailable } from '../store-errors.ts';
import type { LiveEntry, LogPosition } from '../stores.ts';
import { LiveWindow, REMEMBERED_MAX } from './window.ts';

/** The pause between two reads. */
const EVERY_MS: Millis = 500;
/** The maximum of entries of one read. */
export const READ_MAX = 500;
/**
 * The maximum of full reads in a row without a pause. So a burst is published completely, and a constant flood at a
 * thousand entries a second.
 */
const FULL_READS_MAX = 8;

/** A watcher of the log of a project. `start` is called first, `close` last. */
export interface LogWatcher {
  /**
   * Called first: each entry that is committed from now on will be published. `last`: the last entry before the entries
   * to publish.
   */
  start(last: LogPosition | undefined): void;
  /**
   * Publishes new entries, each once, in the order of the log. An entry that was committed after later entries is
   * published after them.
   */
  publish(entries: readonly LiveEntry[]): void;
  /** `count` entries were skipped, because there were too many to publish. */
  skip(count: number): void;
  /** This worker no longer reads the log: the project may be in another cell now. No other call follows. */
  close(): void;
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

  /** Returns a function that stops the watch. After the watch has stopped, `watcher` is not called. */
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
  readonly #onUnwatched: () => void;
  #window: LiveWindow | undefined;
  /** The number of full reads in a row. */
  #fullReads = 0;

  /** `onUnwatched`: called when the feed has closed all its watchers, because the project has left the cell. */
  constructor(projectId: ProjectId, logs: Logs, clock: Clock, onUnwatched: () => void) {
    this.#projectId = projectId;
    this.#logs = logs;
    this.#clock = clock;
    this.#onUnwatched = onUnwatched;
    this.#alarm = new Alarm(clock, () => void this.#poll(), 'outside');
    this.#alarm.setIn(0);
  }

  get isWatched(): boolean {
    return this.#watchers.size > 0;
  }

  add(watcher: LogWatcher): void {
    this.#watchers.add(watcher);
    if (this.#window) watcher.start(this.#window.last);
  }

  remove(watcher: LogWatcher): void {
    this.#watchers.delete(watcher);
    if (!this.isWatched) this.#alarm.cancel();
  }

  async #poll(): Promise<void> {
    let isFull = false;
    try {
      isFull = await this.#read();
    } catch (error) {
      if (error instanceof ProjectAway && error.isGone) return this.#close();
      if (!(error instanceof StoreUnavailable)) throw error; // the next read finds the same entries
    }
    if (this.isWatched) this.#alarm.setIn(isFull ? 0 : EVERY_MS);
  }

  #close(): void {
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    this.#onUnwatched();
    for (const watcher of watchers) watcher.close();
  }

  /** Returns whether the log must be read again without a pause. */
  async #read(): Promise<boolean> {
    const projectId = this.#projectId;
    const nowMs = this.#clock.nowMs();
    const toMs = LiveWindow.toMs(nowMs);
    if (!this.#window || this.#window.isAheadOf(nowMs)) return this.#start(nowMs);
    const window = this.#window;
    const { from: after, known: except } = window;
    const entries = await this.#logs.listLogsAfter({ projectId, after, toMs, except, count: READ_MAX });
    window.add(entries, nowMs);
    if (entries.length > 0) for (const watcher of this.#watchers) watcher.publish(entries);
    this.#fullReads = entries.length < READ_MAX ? 0 : this.#fullReads + 1;
    if (this.#fullReads < FULL_READS_MAX) return this.#fullReads > 0;
    await this.#skipToEnd(window, nowMs);
    return false;
  }

  async #start(nowMs: Millis): Promise<boolean> {
    const isFirst = !this.#window;
    const toMs = LiveWindow.toMs(nowMs);
    const newest = { projectId: this.#projectId, toMs, count: REMEMBERED_MAX };
    const { positions } = await this.#logs.newestLogs(newest);
    this.#window = new LiveWindow(positions, nowMs);
    if (isFirst) for (const watcher of this.#watchers) watcher.start(this.#window.last);
    return false;
  }

  /** Skips to the end of the log, because more entries are written than can be published. */
  async #skipToEnd(window: LiveWindow, nowMs: Millis): Promise<void> {
    const range = { projectId: this.#projectId, toMs: LiveWindow.toMs(nowMs), count: REMEMBERED_MAX };
    const { positions, countAfter } = await this.#logs.newestLogs({ ...range, after: window.from });
    const count = countAfter - window.known.length;
    this.#window = new LiveWindow(positions, nowMs);
    if (count > 0) for (const watcher of this.#watchers) watcher.skip(count);
  }
}
