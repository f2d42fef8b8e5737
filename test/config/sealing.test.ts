import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encryptionKeyFile, ensureEncryptionKey, readEncryptionKey } from '../../src/config/encryption-key.ts';
import { SealBroken, seal, unseal } from '../../src/config/sealing.ts';

const key = randomBytes(32);

describe('sealing', () => {
  it('gives back what was sealed', () => {
    expect(unseal(seal('sig_äöü', key, randomBytes), key)).toBe('sig_äöü');
  });

  it('seals the same text differently each time and shows nothing of it', () => {
    const first = seal('sig_secret', key, randomBytes);
    expect(seal('sig_secret', key, randomBytes)).not.toBe(first);
    expect(Buffer.from(first.slice(3), 'base64url').toString('latin1')).not.toContain('secret');
  });

  it('refuses another key', () => {
    const sealed = seal('sig_secret', key, randomBytes);
    expect(() => unseal(sealed, randomBytes(32))).toThrow(SealBroken);
  });

  it('refuses a text in which any byte was changed', () => {
    const bytes = Buffer.from(seal('sig_secret', key, randomBytes).slice(3), 'base64url');
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      expect(() => unseal(`v1.${changed.toString('base64url')}`, key)).toThrow(SealBroken);
    }
  });

  it.each(['', 'v1.', 'v1.AAAA', 'v2.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 'sig_plain'])(
    'refuses %j',
    (text) => {
      expect(() => unseal(text, key)).toThrow(SealBroken);
    },
  );
});

describe('the encryption key', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'waypost-key-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

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
      /does not hold 32 bytes/,
    );
    expect(readFileSync(encryptionKeyFile(folder), 'utf8')).toBe('short');
  });
});
