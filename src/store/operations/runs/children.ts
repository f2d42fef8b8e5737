/** Reads the records of waits and invocations, and the first messages of invoked runs, which contain the inputs. */
import type { MessageSettings } from '../../../protocol/options/settings.ts';
import type { Queries } from '../../driver.ts';
import { CONTENT_FIELDS, type ContentRow } from '../messages/rows.ts';
import { rowsWithinBytes } from './logged-runs.ts';

/** An entry of a journal with its content. */
export interface RecordRow extends ContentRow {
  run_key: number;
  entryKey: string;
}

/** The records of waits and invocations with these entry keys in the journals of these runs, without their bodies. */
export async function recordsIn(
  queries: Queries,
  args: { runKeys: number[]; entryKeys: string[] },
): Promise<RecordRow[]> {
  // The order keeps the planner from walking whole journals instead of their entry keys.
  return queries.query<RecordRow>(
    `select j.run_key, j.entry_key as "entryKey", ${CONTENT_FIELDS.replace('c.body', 'null as body')}
     from journal j lookup contents c on (c.key = j.key) where j.run_key in (??) and j.entry_key in (??)
     order by j.run_key, j.entry_key`,
    [args.runKeys, args.entryKeys],
  );
}

/** The first messages of the invoked runs that `settings` name. Bodies beyond a total of `bytesMax` are left out. */
export async function childrenOf(
  queries: Queries,
  settings: readonly string[],
  bytesMax: number,
): Promise<ContentRow[]> {
  const keys = [...new Set(settings.flatMap((text) => (JSON.parse(text) as MessageSettings).invoke?.runKey ?? []))];
  if (keys.length === 0) return [];
  const sizes = await queries.query<{ key: number; bytes: number | null }>(
    'select key, length(body) as bytes from contents where key in (??) order by key',
    [keys],
  );
  const whole = rowsWithinBytes(sizes, bytesMax).map(({ key }) => key);
  return queries.query<ContentRow>(
    `select ${CONTENT_FIELDS.replace('c.body', 'case when c.key in (??) then c.body end as body')}
     from contents c where c.key in (??)`,
    [whole, keys],
  );
}
