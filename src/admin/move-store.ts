/** `waypost migrate-store`: copies a stopped store into another database, in either direction. */
import { migrate } from '../store/migrations/index.ts';
import { type CopiedTable, type CopyOptions, copyStore } from '../store/move/copy.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { describeDatabase, type ExclusiveStore, openExclusiveStore, readDatabaseUrl } from './exclusive-store.ts';
import { type Database, messageOf } from './open-store.ts';

export interface MoveRequest {
  /** `sqlite:<path>` or `postgres://…`. */
  from: string;
  to: string;
  overwrite: boolean;
  onProgress: NonNullable<CopyOptions['onProgress']>;
}

/**
 * Copies all of `from` to `to`, and returns the tables after comparing both sides. The source is migrated to this
 * program's schema, as at the start of a server, and is otherwise unchanged. Throws `CannotStart` with a message for the
 * operator.
 */
export async function moveStore({ from, to, overwrite, onProgress }: MoveRequest): Promise<CopiedTable[]> {
  const [sourceUrl, targetUrl] = [readDatabaseUrl(from, '--from'), readDatabaseUrl(to, '--to')];
  if (isSame(sourceUrl, targetUrl)) throw new CannotStart('--from and --to name the same database');
  const source = await openExclusiveStore(sourceUrl, { create: false });
  try {
    await migrateSource(source, sourceUrl);
    const target = await openExclusiveStore(targetUrl, { create: true });
    try {
      const { driver, afterChunk, prepareLogs } = target;
      return await copyStore(source.driver, driver, {
        overwrite,
        onProgress,
        afterChunk,
        ...(prepareLogs && { prepareLogs }),
      });
    } catch (error) {
      throw new CannotStart(messageOf(error), { cause: error });
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/** Does not detect that two different URLs name one PostgreSQL database. In this case the target is not empty. */
function isSame(one: Database, other: Database): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

async function migrateSource({ driver }: ExclusiveStore, url: Database): Promise<void> {
  try {
    await migrate(driver);
  } catch (error) {
    throw new CannotStart(`cannot move ${describeDatabase(url)}: ${messageOf(error)}`, { cause: error });
  }
}
