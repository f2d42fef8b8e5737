/** Reads the size of the database. */
import type { ProjectId } from '../../../engine/model.ts';
import type { Storage } from '../../../engine/stores.ts';
import type { Queries } from '../../driver.ts';
import { read } from '../operation.ts';

interface StorageRow {
  bytes: number;
  unused: number | null;
  shared: number;
}

/** Takes a few milliseconds at most. */
export const readStorage = read(
  async (queries: Queries, { projectId }: { projectId: ProjectId }): Promise<StorageRow> => {
    const [row] = await queries.query<StorageRow>(
      `select s.bytes, s.unused, case when exists lookup (select 1 from projects where id <> ?) then 1 else 0 end as shared
       from database_size s`,
      [projectId],
    );
    if (!row) throw new Error('the database did not say how large it is');
    return row;
  },
  ({ bytes, unused, shared }): Storage => {
    return { bytes, ...(unused !== null && { unusedBytes: unused }), isShared: shared === 1 };
  },
);
