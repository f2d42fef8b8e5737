/** Finds runs by their name or key, what their journals show, and what was stored of waits and invocations. */
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

/** Another message may have replaced the first one (journals.ts), but `caller_ip` is still that of the trigger. */
const FOUND = `select ${RUN_FIELDS}, c.id as message_id, t.caller_ip
  from runs r lookup journal j on (j.run_key = r.key and j.position = 0) lookup contents c on (c.key = j.key)
  lookup contents t on (t.key = r.key)`;

/** The run with this id that has not ended. */
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

/** By its key, ended or not. */
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

/** Bytes of the journal, as deliveries show it, of the run with this id that has not ended. */
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

/** What deliveries show of the journal, in order: after `afterPosition` (default: from the start) up to `toPosition`. */
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

/** The waits, invocations and other entries that are kept, in the order of `keys`; missing ones are left out. */
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
