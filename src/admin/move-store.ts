/** `waypost migrate-store`: copies a stopped store into another database, in either direction. */
import { migrate } from '../store/migrations/index.ts';
import { type CopiedTable, type CopyOptions, copyStore } from '../store/move/copy.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { type Database, messageOf } from './open-store.ts';
import { describe, openEnd, readDatabaseUrl, type StoreEnd } from './store-end.ts';

export interface MoveRequest {
  /** `sqlite:<path>` or `postgres://…`. */
  from: string;
  to: string;
  overwrite: boolean;
  onProgress: NonNullable<CopyOptions['onProgress']>;
}

/**
 * Copies all of `from` to `to`, and returns what it found equal on both sides. The source gets this program's schema,
 * as when a server starts; nothing else of it changes. Throws `CannotStart` with what the operator must know.
 */
export async function moveStore({ from, to, overwrite, onProgress }: MoveRequest): Promise<CopiedTable[]> {
  const [sourceUrl, targetUrl] = [readDatabaseUrl(from, '--from'), readDatabaseUrl(to, '--to')];
  if (isSame(sourceUrl, targetUrl)) throw new CannotStart('--from and --to name the same database');
  const source = await openEnd(sourceUrl, { create: false });
  try {
    await migrateSource(source, sourceUrl);
    const target = await openEnd(targetUrl, { create: true });
    try {
      const { driver, afterPiece, makeRoom } = target;
      return await copyStore(source.driver, driver, {
        overwrite,
        onProgress,
        afterChunk: afterPiece,
        ...(makeRoom && { prepareLogs: makeRoom }),
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

/** Two different URLs of one PostgreSQL database are not noticed here, but then the target is not empty. */
function isSame(one: Database, other: Database): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

async function migrateSource({ driver }: StoreEnd, url: Database): Promise<void> {
  try {
    await migrate(driver);
  } catch (error) {
    throw new CannotStart(`cannot move ${describe(url)}: ${messageOf(error)}`, { cause: error });
  }
}
