/** Finds the encryption key: in the setting, or in a file in the data folder that only its owner can read. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../system/folder.ts';
import { ENCRYPTION_KEY_BYTES } from './sealing.ts';
import type { Config } from './table.ts';

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

/** The existing key, or a new one, kept in the data folder (created when missing) for the next start. */
export function ensureEncryptionKey(settings: KeySettings, randomBytes: (count: number) => Uint8Array): Uint8Array {
  const present = readEncryptionKey(settings);
  if (present !== undefined) return present;
  const key = Buffer.from(randomBytes(ENCRYPTION_KEY_BYTES));
  makeFolder(settings.dataDir);
  const file = encryptionKeyFile(settings.dataDir);
  try {
    // `wx`: when two servers start at once, one fails. It must not overwrite the key that the other already uses.
    writeFileSync(file, `${key.toString('base64')}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    // On a full disk, a partly written key would stop every later start.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') rmSync(file, { force: true });
    throw error;
  }
  return key;
}
