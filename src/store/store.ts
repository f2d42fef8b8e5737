/**
 * The engine's `Store`, over a queue of commands and a reader. Everything here runs in the caller's thread: values are
 * encoded before they go to the database's thread, and decoded when they come back. If the operations of a part need no
 * more than that, and decode their answers themselves, the part is derived from them. The other parts have files of
 * their own.
 */
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
import * as operatorEvents from './operations/operator-events.ts';
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
import { retentionOver } from './parts/retention.ts';
import { runLogsOver } from './parts/run-logs.ts';
import { runsOver } from './parts/runs.ts';
import { schedulesOver } from './parts/schedules.ts';
import { waitersOver } from './parts/waiters.ts';

/** The whole store, with what only its makers ask of it. */
export interface SqlStore extends Store {
  /** Batches committed, commands in them, commands that wait for theirs. */
  counts(): { batches: number; commands: number; waiting: number };
}

export function storeOver(connection: Connection): SqlStore {
  return {
    messages: messagesOver(connection),
    dead: deadOver(connection),
    backlog: derive(connection, { ...backlog, ...storage, ...totals }),
    logs: logsOver(connection),
    minutes: derive(connection, minutes),
    runs: runsOver(connection),
    deadRuns: deadRunsOver(connection),
    runLogs: runLogsOver(connection),
    waiters: { ...waitersOver(connection), ...derive(connection, allWaiters) },
    schedules: schedulesOver(connection),
    retention: retentionOver(connection),
    keys: derive(connection, { ...flowCommands, ...projectGate }),
    queues: derive(connection, queueCommands),
    urlGroups: derive(connection, urlGroups),
    projects: derive(connection, { ...projects, ...tokens }),
    cells: derive(connection, cells),
    moves: derive(connection, moves),
    workers: derive(connection, workers),
    operatorEvents: derive(connection, operatorEvents),
    onDue: (listener) => connection.listen(listener),
    onWaitingLine: (listener) => connection.listenForWaitingLines(listener),
    onAccountsChanged: (listener) => connection.listenForAccounts?.(listener),
    onCancelled: (listener) => connection.listenForCancelled(listener),
    onCommitUnknown: (listener) => connection.listenForCommitUnknown(listener),
    guardProjects() {
      if (!connection.guardProjects) throw new Error('this store cannot be one of several cells');
      connection.guardProjects();
    },
    async ping() {
      // It writes: a transaction without writes would succeed even on a full disk.
      await Promise.all([connection.read('ping', {}), connection.write('reserveNumbers', { count: 1 })]);
    },
    close: () => connection.close(),
    counts: () => connection.counts(),
  };
}
