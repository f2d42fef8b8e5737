import assert from 'node:assert/strict';
import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../support/seeded-random.ts';
import { type Chance, ForgetfulDisk } from './disk.ts';
import type { DiskRecord } from './record-log.ts';

const written = (file: string, offset: number, text: string): DiskRecord => ({
  op: 'write',
  file,
  offset,
  data: Buffer.from(text),
});

/** Always the mode named here; within 'some' and 'torn', every second piece survives. */
function always(mode: string): Chance {
  let isOddCall = false;
  return {
    int: (_min, max) => max,
    chance: () => {
      isOddCall = !isOddCall;
      return isOddCall;
    },
    choose: <T>(items: readonly T[]) => items.find((item) => item === mode) ?? assert.fail(`there is no mode ${mode}`),
  };
}

describe('a disk that forgets', () => {
  it('keeps what was synced, whatever the power cut does', () => {
    const disk = new ForgetfulDisk();
    for (const record of [written('db', 0, 'old'), written('db', 3, '!'), { op: 'sync', file: 'db' } as const]) {
      disk.play(record);
    }
    for (let seed = 0; seed < 50; seed += 1)
      expect(disk.cut(new SeededRandom(seed)).get('db')?.toString()).toBe('old!');
  });

  it('may lose or keep what was written since', () => {
    const disk = new ForgetfulDisk();
    disk.play(written('db', 0, 'old'));
    disk.play({ op: 'sync', file: 'db' });
    disk.play(written('db', 0, 'new'));
    expect(disk.cut(always('nothing')).get('db')?.toString()).toBe('old');
    expect(disk.cut(always('everything')).get('db')?.toString()).toBe('new');
  });

  it('syncs each file for itself', () => {
    const disk = new ForgetfulDisk();
    disk.play(written('db', 0, 'one'));
    disk.play(written('wal', 0, 'two'));
    disk.play({ op: 'sync', file: 'wal' });
    expect([...disk.cut(always('nothing')).keys()]).toEqual(['wal']);
  });

  it('may keep a later write and lose an earlier one, which then reads as zeros', () => {
    const disk = new ForgetfulDisk();
    disk.play(written('wal', 0, 'a'));
    disk.play(written('wal', 1, 'b'));
    expect(disk.cut(always('some')).get('wal')).toEqual(Buffer.from('\0b'));
  });

  it('tears a write at sectors of 512 bytes of the file', () => {
    const disk = new ForgetfulDisk();
    disk.play({ op: 'write', file: 'db', offset: 0, data: Buffer.alloc(2_048, 'x') });
    disk.play({ op: 'sync', file: 'db' });
    disk.play({ op: 'write', file: 'db', offset: 256, data: Buffer.alloc(1_280, 'y') });
    const sectors = new Set<string>();
    for (let seed = 0; seed < 1_000; seed += 1) {
      const content = disk.cut(new SeededRandom(seed)).get('db')?.toString() ?? '';
      expect(content).toHaveLength(2_048);
      for (const [from, to] of [
        [0, 256],
        [256, 512],
        [512, 1_024],
        [1_024, 1_536],
        [1_536, 2_048],
      ] as const) {
        const distinct = new Set(content.slice(from, to));
        expect(distinct.size).toBe(1);
      }
      sectors.add([256, 512, 1_024].map((at) => content[at]).join(''));
    }
    // Each of the three pieces survives or not, independently of the others.
    expect(sectors.size).toBe(8);
  });

  it('can be told that syncs of a file do not hold', () => {
    const disk = new ForgetfulDisk({ ignoreSync: (file) => file.endsWith('-wal') });
    disk.play(written('db-wal', 0, 'frames'));
    disk.play({ op: 'sync', file: 'db-wal' });
    expect(disk.cut(always('nothing')).size).toBe(0);
  });
});
