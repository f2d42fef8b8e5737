/** Finds runs by their id or key, the shown entries of their journals, and the records of waits and invocations. */
import type { InProject, Message, ProjectId } from '../../../engine/model.ts';
import type { JournalEntry, Run, RunKey } from '../../../workflow/model.ts';
import type { Queries } from '../../driver.ts';
import { CONTENT_FIELDS, type ContentRow, decodeMessage } from '../messages/rows.ts';
import { longRead, read } from '../operation.ts';
import {
  decodeJournalEntry,
  decodeRun,
  type JournalRow,
  RUN_FIELDS,
  RUN_STATE,
  type RunRow,
  SHOWN_KINDS,
  type WholeRunRow,
} from './run-rows.ts';

type FoundRow = RunRow & { message_id: string; caller_ip: string | null };

/** The first message may have been replaced (journals.ts), so `caller_ip` is read from the trigger. */
const FOUND = `select ${RUN_FIELDS}, c.id as message_id, t.caller_ip
  from runs r lookup journal j on (j.run_key = r.key and j.position = 0) lookup contents c on (c.key = j.key)
  lookup contents t on (t.key = r.key)`;

/** The active run with this id. */
export const findActiveRun = read(
  async (
    queries: Queries,
    { projectId, id }: { projectId: ProjectId; id: string },
  ): Promise<WholeRunRow | undefined> => {
    const [row] = await queries.query<FoundRow>(
      `${FOUND} where r.project_id = ? and r.id = ? and r.state = ${RUN_STATE.RUN_STARTED}`,
      [projectId, id],
    );
    return row && withInvokers(queries, row);
  },
  (row): Run | undefined => row && decodeRun(row),
);

/** The run with this key, active or ended. */
export const findRun = read(
  async (
    queries: Queries,
    { projectId, key }: { projectId: ProjectId; key: RunKey },
  ): Promise<WholeRunRow | undefined> => {
    const [row] = await queries.query<FoundRow>(`${FOUND} where r.key = ? and r.project_id = ?`, [key, projectId]);
    return row && withInvokers(queries, row);
  },
  (row): Run | undefined => row && decodeRun(row),
);

/** The size in bytes of the journal that a delivery of the active run with this id contains. */
export const journalBytes = read(
  async (queries: Queries, { projectId, id }: { projectId: ProjectId; id: string }): Promise<number | undefined> => {
    const [row] = await queries.query<{ journal_bytes: number }>(
      `select journal_bytes from runs where project_id = ? and id = ? and state = ${RUN_STATE.RUN_STARTED}`,
      [projectId, id],
    );
    return row?.journal_bytes;
  },
);

interface ReadJournalArgs extends InProject {
  runKey: RunKey;
  afterPosition?: number;
  toPosition?: number;
}

/** The entries that deliveries show, in order: after `afterPosition` (default: from the start) up to `toPosition`. */
export const readJournal = longRead(
  (
    queries: Queries,
    { runKey, afterPosition = -1, toPosition = Number.MAX_SAFE_INTEGER }: ReadJournalArgs,
  ): Promise<JournalRow[]> => {
    return queries.query<JournalRow>(
      `select j.position, c.id, j.kind, c.body from journal j lookup contents c on (c.key = j.key)
     where j.run_key = ? and j.position > ? and j.position <= ? and j.kind in (${SHOWN_KINDS}) order by j.position`,
      [runKey, afterPosition, toPosition],
    );
  },
  (rows): JournalEntry[] => rows.map(decodeJournalEntry),
);

/** The contents of waits, invocations and other entries, in the order of `keys`. Missing entries are skipped. */
export const findRecords = read(
  async (queries: Queries, { projectId, keys }: { projectId: ProjectId; keys: number[] }): Promise<ContentRow[]> => {
    const rows = await queries.query<ContentRow>(
      `select ${CONTENT_FIELDS} from contents c where c.key in (??) and c.project_id = ?`,
      [keys, projectId],
    );
    const byKey = new Map(rows.map((row) => [row.key, row]));
    return keys.flatMap((key) => byKey.get(key) ?? []);
  },
  (rows): Message[] => rows.map(decodeMessage),
);

async function withInvokers(queries: Queries, row: FoundRow): Promise<WholeRunRow> {
  const invocations = await queries.query<{ key: number }>(
    'select key from invocations where run_key = ? order by key',
    [row.key],
  );
  return { ...row, invokers: invocations.map(({ key }) => key) };
}
