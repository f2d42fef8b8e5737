/** Which database, with which encryption key? For the server and for `waypost init`. */
import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Sealer } from './accounts.ts';
import { ensureEncryptionKey, readEncryptionKey } from './config/encryption-key.ts';
import { ENCRYPTION_KEY_BYTES } from './config/sealing.ts';
import type { Config } from './config/table.ts';
import type { Randomness } from './engine/ports.ts';
import type { Store } from './engine/stores.ts';
import { StoreInUse } from './store/drivers/sqlite/lock.ts';
import { openSqliteStore } from './store/drivers/sqlite/open.ts';
import { endOfTurn } from './system.ts';

/** Something outside the program keeps it from starting. The message is for the operator, in one line. */
export class CannotStart extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CannotStart';
  }
}

/** Path of the SQLite file, or `:memory:`. */
export function databasePath({ memory, databaseUrl, dataDir }: Config): string {
  if (memory) return ':memory:';
  return databaseUrl === '' ? join(dataDir, 'waypost.db') : databaseUrl.slice('sqlite:'.length);
}

/** Whether other workers, which live and die by themselves, may work on the same database. */
export function isShared({ memory, databaseUrl }: Config): boolean {
  return !memory && /^postgres(ql)?:/.test(databaseUrl);
}

/** Opens the database; `create`: a missing one is made. Throws `CannotStart`. */
export async function openStore(
  config: Config,
  { onFatal, create }: { onFatal: (error: Error) => void; create: boolean },
): Promise<Store> {
  const path = databasePath(config);
  if (!create && path !== ':memory:' && !existsSync(path)) {
    throw new CannotStart(`there is no database ${path}: run "waypost init" first`);
  }
  try {
    if (path !== ':memory:') mkdirSync(dirname(resolve(path)), { recursive: true, mode: 0o700 });
    const { queuesMax, parallelismMax, messagesPerDayMax, journalBytesMax } = config;
    const limits = { queuesMax, parallelismMax, messagesPerDayMax, journalBytesMax };
    return await openSqliteStore({ path, onFatal, limits, batch: { endOfTurn } });
  } catch (error) {
    if (error instanceof StoreInUse) throw new CannotStart(error.message, { cause: error });
    throw new CannotStart(`cannot open the database ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** The key that signing keys are encrypted with. `create`: a missing one is made. Throws `CannotStart`. */
export function openSealer(config: Config, randomness: Randomness, { create }: { create: boolean }): Sealer {
  const randomBytes = (count: number) => randomness.bytes(count);
  if (config.memory && config.encryptionKey === '') {
    return { encryptionKey: randomBytes(ENCRYPTION_KEY_BYTES), randomBytes };
  }
  try {
    const encryptionKey = create ? ensureEncryptionKey(config, randomBytes) : readEncryptionKey(config);
    if (encryptionKey === undefined) throw new Error('there is none; "waypost init" makes one');
    return { encryptionKey, randomBytes };
  } catch (error) {
    throw new CannotStart(`cannot use the encryption key: ${messageOf(error)}`, { cause: error });
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
