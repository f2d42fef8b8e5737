/**
 * Reads the encryption key from the setting, or from a file in the data folder that only the owner can read. Creates a
 * missing file.
 */
import { closeSync, linkSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { syncToDisk } from '../system/disk.ts';
import { makeFolder } from '../system/folder.ts';
import { ENCRYPTION_KEY_BYTES, type SealBroken } from './sealing.ts';
import type { Config } from './table.ts';

const SUFFIX_BYTES = 8;

/** The error codes of file systems without hard links, such as SMB shares. */
const NO_LINKS: ReadonlySet<string | undefined> = new Set(['EPERM', 'ENOTSUP', 'ENOSYS']);

type KeySettings = Pick<Config, 'encryptionKey' | 'dataDir'>;

/** The file of the key, which is used if the setting `encryptionKey` is empty. */
export function encryptionKeyFile(dataDir: string): string {
  return join(dataDir, 'encryption.key');
}

/** Returns the key, or undefined if no key is set or saved. Throws when the content of the file is not a key. */
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
    throw new Error(`${file} does not contain ${ENCRYPTION_KEY_BYTES} bytes in base64`);
  return key;
}

/** The error message for the operator if no key is found. */
export function missingKeyMessage(dataDir: string): string {
  return `there is no encryption key in ${dataDir}: put the encryption.key of this store there, or set WAYPOST_ENCRYPTION_KEY. "waypost init" makes one for a new store only`;
}

/** The error message for the operator if the key belongs to another store. */
export function wrongKeyMessage(broken: SealBroken, dataDir: string): string {
  return `${broken.message}. Put the encryption.key of this store into ${dataDir}, or set WAYPOST_ENCRYPTION_KEY`;
}

/** Returns the existing key. Creates a missing key and saves it in the data folder, which is also created if missing. */
export function ensureEncryptionKey(settings: KeySettings, randomBytes: (count: number) => Uint8Array): Uint8Array {
  const existing = readEncryptionKey(settings);
  if (existing !== undefined) return existing;
  const key = Buffer.from(randomBytes(ENCRYPTION_KEY_BYTES));
  makeFolder(settings.dataDir);
  saveKey(settings.dataDir, key, Buffer.from(randomBytes(SUFFIX_BYTES)).toString('hex'));
  return key;
}

/**
 * Writes the key to a temporary file, syncs the file to disk, and then renames the file: data that is encrypted with the
 * key is lost without the key. The `suffix` of the temporary file must be unique. A process id is not unique, since every
 * container has the same.
 */
function saveKey(dataDir: string, key: Buffer, suffix: string): void {
  const file = encryptionKeyFile(dataDir);
  const temporary = `${file}.new-${suffix}`;
  try {
    writeFileSync(temporary, `${key.toString('base64')}\n`, { mode: 0o600, flag: 'wx' });
    syncToDisk(temporary);
    renameExclusively(temporary, file);
  } finally {
    rmSync(temporary, { force: true });
  }
  syncToDisk(dataDir);
}

/** Fails if the file exists: of two servers that start at once, the second must not overwrite the key of the first. */
function renameExclusively(temporary: string, file: string): void {
  try {
    linkSync(temporary, file);
  } catch (error) {
    if (!NO_LINKS.has((error as NodeJS.ErrnoException).code)) throw error;
    closeSync(openSync(file, 'wx', 0o600));
    renameSync(temporary, file);
  }
}
