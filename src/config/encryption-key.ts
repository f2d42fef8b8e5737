/** Finds the encryption key: in the setting, or in a file in the data folder that only its owner can read. */
import { closeSync, linkSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { syncToDisk } from '../system/disk.ts';
import { makeFolder } from '../system/folder.ts';
import { ENCRYPTION_KEY_BYTES, type SealBroken } from './sealing.ts';
import type { Config } from './table.ts';

const PART_NAME_BYTES = 8;

/** The error codes of file systems without hard links, such as SMB shares. */
const NO_LINKS: ReadonlySet<string | undefined> = new Set(['EPERM', 'ENOTSUP', 'ENOSYS']);

type KeySettings = Pick<Config, 'encryptionKey' | 'dataDir'>;

/** The key's file, for when the setting is empty. */
export function encryptionKeyFile(dataDir: string): string {
  return join(dataDir, 'encryption.key');
}

/** The key, or undefined when there is none yet. Throws when the content of the file is not a key. */
export function readEncryptionKey({ encryptionKey, dataDir }: KeySettings): Uint8Array | undefined {
  if (encryptionKey !== '') return Buffer.from(encryptionKey, 'base64');
  const file = encryptionKeyFile(dataDir);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const key = Buffer.from(text.trim(), 'base64');
  if (key.length !== ENCRYPTION_KEY_BYTES)
    throw new Error(`${file} does not hold ${ENCRYPTION_KEY_BYTES} bytes in base64`);
  return key;
}

/** The message for the operator if no key is found. */
export function missingKey(dataDir: string): string {
  return `there is no encryption key in ${dataDir}: put the encryption.key of this store there, or set WAYPOST_ENCRYPTION_KEY. "waypost init" makes one for a new store only`;
}

/** The message for the operator if the key belongs to another store. */
export function wrongKey(broken: SealBroken, dataDir: string): string {
  return `${broken.message}. Put the encryption.key of this store into ${dataDir}, or set WAYPOST_ENCRYPTION_KEY`;
}

/** The existing key, or a new one, kept in the data folder (created when missing) for the next start. */
export function ensureEncryptionKey(settings: KeySettings, randomBytes: (count: number) => Uint8Array): Uint8Array {
  const present = readEncryptionKey(settings);
  if (present !== undefined) return present;
  const key = Buffer.from(randomBytes(ENCRYPTION_KEY_BYTES));
  makeFolder(settings.dataDir);
  putInPlace(settings.dataDir, key, Buffer.from(randomBytes(PART_NAME_BYTES)).toString('hex'));
  return key;
}

/**
 * The key has its name only when it is on disk, whole: what the store gets next can be read with it alone. `part`: no
 * other process uses it. Process ids would not do, since each container has the same ones.
 */
function putInPlace(dataDir: string, key: Buffer, part: string): void {
  const file = encryptionKeyFile(dataDir);
  const written = `${file}.new-${part}`;
  try {
    writeFileSync(written, `${key.toString('base64')}\n`, { mode: 0o600, flag: 'wx' });
    syncToDisk(written);
    nameOnce(written, file);
  } finally {
    rmSync(written, { force: true });
  }
  syncToDisk(dataDir);
}

/** When two servers start at once, one fails. It must not overwrite the key that the other already uses. */
function nameOnce(written: string, file: string): void {
  try {
    linkSync(written, file);
  } catch (error) {
    if (!NO_LINKS.has((error as NodeJS.ErrnoException).code)) throw error;
    closeSync(openSync(file, 'wx', 0o600));
    renameSync(written, file);
  }
}
