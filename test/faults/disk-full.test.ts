import { spawnSync } from 'node:child_process';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { describeBrokenDisk, FaultyRun, SOUND } from './faulty-run.ts';

/** The server may go on or end; either way it must serve again once there is space, without anybody's help. */
async function recover(run: FaultyRun, ended: Promise<unknown>): Promise<void> {
  const state = await Promise.race([ended.then(() => 'ended'), sleep(500).then(() => 'running')]);
  if (state === 'ended') {
    await run.endpoints.nextIncarnation();
    await run.start();
  }
  await run.publishAccepted(3);
}

describeBrokenDisk('a full disk', (prepared) => {
  it('answers publishes with 503 and Retry-After, and loses nothing that was acknowledged', {
    timeout: 60_000,
  }, async () => {
    const run = prepared();
    const server = await run.start();
    await run.publishAccepted(30);
    const fault = join(run.folder, 'disk-full');
    writeFileSync(fault, '');
    const replies = [];
    for (let i = 0; i < 10; i += 1) replies.push(await run.publish());
    expect(replies.filter((reply) => reply.kind === 'ok')).toEqual([]);
    const first = replies[0];
    expect(first).toMatchObject({ kind: 'refused', status: 503 });
    expect(first?.kind === 'refused' ? Number(first.retryAfter) : 0).toBeGreaterThan(0);
    rmSync(fault);
    await recover(run, server.exited);
    expect(await run.verdict()).toMatchObject(SOUND);
  });
});

const FILESYSTEM_MEBIBYTES = 16;
const mountObstacle = process.getuid?.() === 0 ? undefined : 'mounting a small file system needs root';

describe.skipIf(mountObstacle !== undefined)(
  `a small file system that fills up${mountObstacle === undefined ? '' : ` (skipped: ${mountObstacle})`}`,
  () => {
    let run: FaultyRun;
    let isMounted = false;
    beforeEach(async () => {
      run = await FaultyRun.prepare();
      const size = `size=${FILESYSTEM_MEBIBYTES}m`;
      isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', size, 'tmpfs', run.dataDir]).status === 0;
    });
    afterEach(async () => {
      if (isMounted) spawnSync('umount', ['-l', run.dataDir]);
      await run.close();
    });

    it('serves again once there is space, with everything that was acknowledged', {
      timeout: 60_000,
    }, async (context) => {
      if (!isMounted) context.skip('root may not mount here');
      const server = await run.start();
      await run.publishAccepted(10);
      const filler = join(run.dataDir, 'filler');
      const { bavail, bsize } = statfsSync(run.dataDir);
      writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - 1024 * 1024)));
      let refused = 0;
      for (let i = 0; i < 400 && refused < 5; i += 1) {
        const reply = await run.publish({ 'Upstash-Delay': '0.5s' }, 10_000);
        if (reply.kind === 'refused') expect(reply.status).toBe(503);
        if (reply.kind !== 'ok') refused += 1;
      }
      expect(refused).toBe(5);
      rmSync(filler);
      await recover(run, server.exited);
      expect(await run.verdict()).toMatchObject(SOUND);
    });
  },
);
