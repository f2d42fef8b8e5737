import { randomBytes } from 'node:crypto';
import fs, { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { encryptionKeyFile, ensureEncryptionKey, readEncryptionKey } from '../../src/config/encryption-key.ts';
import { SealBroken, seal, unseal } from '../../src/config/sealing.ts';
import { testFolder } from '../support/folder.ts';

const key = randomBytes(32);

describe('sealing', () => {
  it('gives back what was sealed', () => {
    expect(unseal(seal('sig_äöü', key, randomBytes), key, 'the keys')).toBe('sig_äöü');
  });

  it('seals the same text differently each time and shows nothing of it', () => {
    const first = seal('sig_secret', key, randomBytes);
    expect(seal('sig_secret', key, randomBytes)).not.toBe(first);
    expect(Buffer.from(first.slice(3), 'base64url').toString('latin1')).not.toContain('secret');
  });

  it('refuses another key', () => {
    const sealed = seal('sig_secret', key, randomBytes);
    expect(() => unseal(sealed, randomBytes(32), 'the keys')).toThrow(SealBroken);
  });

  it('refuses a text in which any byte was changed', () => {
    const bytes = Buffer.from(seal('sig_secret', key, randomBytes).slice(3), 'base64url');
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      expect(() => unseal(`v1.${changed.toString('base64url')}`, key, 'the keys')).toThrow(SealBroken);
    }
  });

  it.each(['', 'v1.', 'v1.AAAA', 'v2.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 'sig_plain'])(
    'refuses %j',
    (text) => {
      expect(() => unseal(text, key, 'the keys')).toThrow(SealBroken);
    },
  );
});

describe('the encryption key', () => {
  let folder: string;

  beforeEach(() => {
    folder = testFolder();
  });
  afterEach(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });

  /** Makes a key in the folder on a file system that is asked for links and for what is on disk as given. */
  const makeOn = ({ link, sync }: { link?: () => void; sync?: () => void }): Uint8Array => {
    if (link) vi.spyOn(fs, 'linkSync').mockImplementation(link);
    if (sync) vi.spyOn(fs, 'fsyncSync').mockImplementation(sync);
    syncBuiltinESMExports();
    return ensureEncryptionKey({ encryptionKey: '', dataDir: folder }, randomBytes);
  };
  const failing = (code: string) => () => {
    throw Object.assign(new Error(code), { code });
  };
  const kept = () => readEncryptionKey({ encryptionKey: '', dataDir: folder });

  it('comes from the setting when there is one', () => {
    expect(readEncryptionKey({ encryptionKey: key.toString('base64'), dataDir: folder })).toEqual(key);
  });

  it('is made once, in a folder and a file that only their owner can read', () => {
    const settings = { encryptionKey: '', dataDir: join(folder, 'data') };
    expect(readEncryptionKey(settings)).toBeUndefined();
    const made = ensureEncryptionKey(settings, randomBytes);
    expect(ensureEncryptionKey(settings, randomBytes)).toEqual(made);
    expect(statSync(encryptionKeyFile(settings.dataDir)).mode & 0o777).toBe(0o600);
    expect(statSync(settings.dataDir).mode & 0o777).toBe(0o700);
    expect(readFileSync(encryptionKeyFile(settings.dataDir), 'utf8').trim()).toBe(Buffer.from(made).toString('base64'));
  });

  it('is refused, not replaced, when its file is damaged', () => {
    writeFileSync(encryptionKeyFile(folder), 'short');
    expect(() => ensureEncryptionKey({ encryptionKey: '', dataDir: folder }, randomBytes)).toThrow(
      /does not contain 32 bytes/,
    );
    expect(readFileSync(encryptionKeyFile(folder), 'utf8')).toBe('short');
  });

  it('gets its name when it is on disk, and its name is on disk before it is used', () => {
    const steps: string[] = [];
    const names = () => readdirSync(folder).map((name) => name.replace(/new-.*/, 'new'));
    const { linkSync } = fs;
    vi.spyOn(fs, 'linkSync').mockImplementation((from, to) => {
      steps.push('link');
      linkSync(from, to);
    });
    const made = makeOn({ sync: () => steps.push(`sync: ${names()}`) });
    expect(steps).toEqual(['sync: encryption.key.new', 'link', 'sync: encryption.key']);
    expect(kept()).toEqual(made);
  });

  it('is not replaced by one that is made at the same time, of which nothing stays', () => {
    const other = `${key.toString('base64')}\n`;
    const sync = () => writeFileSync(encryptionKeyFile(folder), other);
    expect(() => makeOn({ sync })).toThrow('EEXIST');
    expect(readdirSync(folder)).toEqual(['encryption.key']);
    expect(kept()).toEqual(key);
  });

  it('leaves nothing behind when the disk is full', () => {
    expect(() => makeOn({ sync: failing('ENOSPC') })).toThrow('ENOSPC');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is made on a file system without hard links', () => {
    const made = makeOn({ link: failing('EPERM') });
    expect(kept()).toEqual(made);
    expect(statSync(encryptionKeyFile(folder)).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(['encryption.key']);
  });

  it('is not replaced on a file system without hard links either', () => {
    const sync = () => writeFileSync(encryptionKeyFile(folder), 'of another');
    expect(() => makeOn({ link: failing('EPERM'), sync })).toThrow('EEXIST');
    expect(readFileSync(encryptionKeyFile(folder), 'utf8')).toBe('of another');
  });

  it('is made on a file system that cannot put names on disk when asked to', () => {
    const made = makeOn({ sync: failing('EINVAL') });
    expect(kept()).toEqual(made);
  });
});
