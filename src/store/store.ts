/**
 * The engine's `Store`, over a queue of commands and a reader. Everything here runs in the caller's thread: values are
 * encoded before they go to the database's thread, and decoded when they come back. If the operations of a part need no
 * more than that, and decode their answers themselves, the part is derived from them. The other parts have files of
 * their own.
 */
import type { OriginLine } from '../engine/lanes/origin-line.ts';
import type { Millis } from '../engine/model.ts';
import type { Store } from '../engine/stores.ts';
import type { Connection } from './connection.ts';
import * as cells from './operations/accounts/cells.ts';
import * as moves from './operations/accounts/moves.ts';
import * as projects from './operations/accounts/projects.ts';
import * as tokens from './operations/accounts/tokens.ts';
import * as backlog from './operations/backlog.ts';
import * as flowCommands from './operations/lanes/flow-commands.ts';
import * as projectGate from './operations/lanes/project-gate.ts';
import * as queueCommands from './operations/lanes/queue-commands.ts';
import * as minutes from './operations/minutes.ts';
import * as storage from './operations/storage.ts';
import * as totals from './operations/totals.ts';
import * as urlGroups from './operations/url-groups.ts';
import * as allWaiters from './operations/waiters/all-waiters.ts';
import * as workers from './operations/workers/workers.ts';
import { deadOver } from './parts/dead.ts';
import { deadRunsOver } from './parts/dead-runs.ts';
import { derive } from './parts/derive.ts';
import { logsOver } from './parts/logs.ts';
import { messagesOver } from './parts/messages.ts';
import { operatorEventsOver } from './parts/operator-events.ts';
import { retentionOver } from './parts/retention.ts';
import { runLogsOver } from './parts/run-logs.ts';
import { runsOver } from './parts/runs.ts';
import { schedulesOver } from './parts/schedules.ts';
import { waitersOver } from './parts/waiters.ts';

/** The whole store. */
export class SqlStore implements Store {
  readonly messages: Store['messages'];
  readonly dead: Store['dead'];
  readonly backlog: Store['backlog'];
  readonly logs: Store['logs'];
  readonly minutes: Store['minutes'];
  readonly runs: Store['runs'];
  readonly deadRuns: Store['deadRuns'];
  readonly runLogs: Store['runLogs'];
  readonly waiters: Store['waiters'];
  readonly schedules: Store['schedules'];
  readonly retention: Store['retention'];
  readonly keys: Store['keys'];
  readonly queues: Store['queues'];
  readonly urlGroups: Store['urlGroups'];
  readonly projects: Store['projects'];
  readonly cells: Store['cells'];
  readonly moves: Store['moves'];
  readonly workers: Store['workers'];
  readonly operatorEvents: Store['operatorEvents'];
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.messages = messagesOver(connection);
    this.dead = deadOver(connection);
    this.backlog = derive(connection, { ...backlog, ...storage, ...totals });
    this.logs = logsOver(connection);
    this.minutes = derive(connection, minutes);
    this.runs = runsOver(connection);
    this.deadRuns = deadRunsOver(connection);
    this.runLogs = runLogsOver(connection);
    this.waiters = { ...waitersOver(connection), ...derive(connection, allWaiters) };
    this.schedules = schedulesOver(connection);
    this.retention = retentionOver(connection);
    this.keys = derive(connection, { ...flowCommands, ...projectGate });
    this.queues = derive(connection, queueCommands);
    this.urlGroups = derive(connection, urlGroups);
    this.projects = derive(connection, { ...projects, ...tokens });
    this.cells = derive(connection, cells);
    this.moves = derive(connection, moves);
    this.workers = derive(connection, workers);
    this.operatorEvents = operatorEventsOver(connection);
  }

  onDue(listener: (dueAtMs: Millis) => void): void {
    this.#connection.listen(listener);
  }

  onWaitingLine(listener: (line: OriginLine) => void): void {
    this.#connection.listenForWaitingLines(listener);
  }

  onAccountsChanged(listener: () => void): void {
    this.#connection.listenForAccounts?.(listener);
  }

  onCommitUnknown(listener: () => void): void {
    this.#connection.listenForCommitUnknown(listener);
  }

  guardProjects(): void {
    if (!this.#connection.guardProjects) throw new Error('this store cannot be one of several cells');
    this.#connection.guardProjects();
  }

  async ping(): Promise<void> {
    // It writes: a transaction without writes would succeed even on a full disk.
    await Promise.all([this.#connection.read('ping', {}), this.#connection.write('reserveNumbers', { count: 1 })]);
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  /** Batches committed, commands in them, commands that wait for theirs. */
  counts(): { batches: number; commands: number; waiting: number } {
    return this.#connection.counts();
  }
}
