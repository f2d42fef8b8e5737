/** Measures how long a move to another cell pauses a project with a million delivered and many waiting messages. */

import { type MoveProgress, moveProject } from '../src/cells/move/move-project.ts';
import { createStore } from '../src/store/create.ts';
import { PostgresDriver } from '../src/store/drivers/postgres/driver.ts';
import { LogPartitions } from '../src/store/drivers/postgres/log-partitions.ts';
import { migrate } from '../src/store/migrations/index.ts';
import { systemClock } from '../src/system/system.ts';
import { freshDatabase, onDatabase, refreshStatistics, startDatabaseServer } from './postgres/database.ts';

export interface ProjectMoveOptions {
  /** Delivered messages, with three log entries each. */
  messages: number;
  /** Messages that are not due yet. */
  waiting: number;
  onProgress?: (line: string) => void;
}

export const DEFAULT_PROJECT_MOVE = { messages: 1_000_000, waiting: 10_000 };

export interface ProjectMoveFigures {
  rows: number;
  copiedMs: number;
  pausedMs: number;
  deletedMs: number;
  /** Duration of each step of the pause. The key is the table that the step writes. */
  steps: Record<string, number>;
}

const PROJECT = 1;
const BODY_BYTES = 200;
/** The history covers two days. */
const SPAN_MS = 2 * 86_400_000;

export async function measureProjectMove(options: ProjectMoveOptions): Promise<ProjectMoveFigures> {
  const server = await startDatabaseServer();
  try {
    const [{ url: from }, { url: to }] = [await freshDatabase(server), await freshDatabase(server)];
    const [source, target] = [await openDriver(from), await openDriver(to)];
    const store = createStore(source);
    for (const name of ['moved', 'other'])
      await store.projects.ensureProject({ name, signingKeys: { current: 'c', next: 'n' }, nowMs: 0 });
    const nowMs = systemClock.wallMs();
    await new LogPartitions(source).createFor({ fromMs: nowMs - SPAN_MS, toMs: nowMs });
    options.onProgress?.('writing the history');
    for (const text of historyStatements(options, nowMs)) await onDatabase(from, (client) => client.query(text));
    await refreshStatistics(from);
    const days = new LogPartitions(target);
    const startedMs = systemClock.elapsedMs;
    const at: Record<string, number> = {};
    const { pausedMs = 0, tables } = await moveProject({
      ...{
        projectId: PROJECT,
        fromCell: 1,
        toCell: 2,
        mover: 'bench',
        directory: store.moves,
        source,
        target,
        clock: systemClock,
      },
      prepareLogs: (logs) => days.createFor(logs),
      onProgress: (progress: MoveProgress) => {
        if (!('step' in progress)) return;
        at[progress.step] = systemClock.elapsedMs - startedMs;
        options.onProgress?.(progress.step);
      },
    });
    await store.close();
    await target.close();
    const between = (one: string, other: string) => Math.round((at[other] ?? 0) - (at[one] ?? 0));
    return {
      rows: tables.reduce((sum, { rows }) => sum + rows, 0),
      copiedMs: between('copying', 'pausing'),
      pausedMs: Math.round(pausedMs),
      deletedMs: between('deleting', 'moved'),
      steps: { waited: between('pausing', 'copying the rest'), rest: between('copying the rest', 'switching') },
    };
  } finally {
    await server.dispose();
  }
}

async function openDriver(url: string): Promise<PostgresDriver> {
  const options = { connectionsMax: 4, timeoutMs: 600_000, prepares: true, clock: systemClock };
  const driver = new PostgresDriver({ url, ...options });
  await migrate(driver);
  return driver;
}

/** Statements that write the rows as a server would have written them, ordered by time. */
function historyStatements({ messages, waiting }: ProjectMoveOptions, nowMs: number): string[] {
  const first = nowMs - SPAN_MS;
  const all = messages + waiting;
  const at = `(${first} + n * ${SPAN_MS - 60_000}::bigint / ${all})`;
  return [
    `insert into contents (key, project_id, id, url, origin, path, method, header, created_at_ms, not_before_ms, settings, body)
     select n, ${PROJECT}, 'msg_' || n, 'https://example.com/hook', 'https://example.com', '/hook', 'POST',
       '{"Content-Type":["text/plain"]}', ${at}, ${at}, '{"dialect":"upstash","maxRetries":3}', decode(repeat('61', ${BODY_BYTES}), 'hex')
     from generate_series(1, ${all}::bigint) n`,
    `insert into logs (project_id, at_ms, seq, message_key, state, response_status)
     select ${PROJECT}, ${at} + e * 20, n * 3 + e, n, e + 1, null
     from generate_series(1, ${messages}::bigint) n, generate_series(0, 2) e`,
    `insert into logs (project_id, at_ms, seq, message_key, state)
     select ${PROJECT}, ${at}, n * 3, n, 1 from generate_series(${messages + 1}::bigint, ${all}) n`,
    `insert into messages (key, project_id, origin, due_at_ms, bytes, retried, wait_state)
     select n, ${PROJECT}, 'https://example.com', ${nowMs + 3_600_000} + n, ${BODY_BYTES}, 0, 0
     from generate_series(${messages + 1}::bigint, ${all}) n`,
  ];
}

export function projectMoveLine({ rows, copiedMs, pausedMs, deletedMs, steps }: ProjectMoveFigures): string {
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(2)} s`;
  const rest = Object.entries(steps).map(([step, ms]) => `${step} ${seconds(ms)}`);
  return `${rows} rows: copied in ${seconds(copiedMs)}, paused for ${seconds(pausedMs)} (${rest.join(', ')}), deleted in ${seconds(deletedMs)}`;
}
