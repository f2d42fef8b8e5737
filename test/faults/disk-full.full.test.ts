import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { listen, originOf } from '../support/listen.ts';
import { TestApp } from '../testing/app.ts';
import { describeBrokenDisk, FaultyRun } from './faulty-run.ts';

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
    expect(await run.readyStatus()).toBe(503);
    const replies = [];
    for (let i = 0; i < 10; i += 1) replies.push(await run.publish());
    expect(replies.filter((reply) => reply.kind === 'ok')).toEqual([]);
    const first = replies[0];
    expect(first).toMatchObject({ kind: 'refused', status: 503 });
    expect(first?.kind === 'refused' ? Number(first.retryAfter) : 0).toBeGreaterThan(0);
    expect(await run.readyStatus()).toBe(503);
    rmSync(fault);
    await recover(run, server.exited);
    await eventually('the server to be ready', async () => (await run.readyStatus()) === 200, 30_000);
    expect(await run.findings()).toEqual([]);
  });

  it.each([
    ['disk-full', '--workers=1'],
    ['wal-full', '--workers=2'],
  ])(
    'lets a server start, answer reads and refuse writes, until there is space (%s, %s)',
    {
      timeout: 60_000,
    },
    async (fault, workers) => {
      const run = prepared();
      const before = await run.start();
      await run.publishAccepted(9);
      const silent = createServer();
      await listen(silent);
      const interrupted = once(silent, 'connection');
      await run.client().publish(originOf(silent), 'to be given back');
      await interrupted;
      await before.end('SIGKILL');
      await run.endpoints.nextIncarnation();
      writeFileSync(join(run.folder, fault), '');
      await run.start(workers);
      expect(await run.readyStatus()).toBe(503);
      expect(await run.publish()).toMatchObject({ kind: 'refused', status: 503 });
      expect(await run.client().call('GET', '/v2/logs')).toMatchObject({
        kind: 'ok',
        json: { events: expect.any(Array) },
      });
      const givenBack = once(silent, 'connection');
      rmSync(join(run.folder, fault));
      await eventually('the server to be ready', async () => (await run.readyStatus()) === 200, 30_000);
      await run.publishAccepted(3);
      await givenBack;
      silent.close();
    },
  );
});

const FILESYSTEM_MEBIBYTES = 16;
const mountObstacle = process.getuid?.() === 0 ? undefined : 'mounting a small file system needs root';

describe.skipIf(mountObstacle !== undefined)(
  `a small file system that fills up${mountObstacle === undefined ? '' : ` (skipped: ${mountObstacle})`}`,
  () => {
    let run: FaultyRun;
    let operator: TestApp;
    let isMounted = false;
    beforeEach(async () => {
      operator = await TestApp.open();
      run = await FaultyRun.prepare(() => ({
        WAYPOST_OPERATOR_EVENTS_URL: operator.url,
        WAYPOST_OPERATOR_EVENTS: 'store_filling,store_full',
        WAYPOST_RETENTION_INTERVAL: '1s',
      }));
      const size = `size=${FILESYSTEM_MEBIBYTES}m`;
      isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', size, 'tmpfs', run.dataDir]).status === 0;
    });
    afterEach(async () => {
      if (isMounted) spawnSync('umount', ['-l', run.dataDir]);
      await run.close();
      await operator.close();
    });

    it('serves again once there is space, with everything that was acknowledged, and tells the operator', {
      timeout: 60_000,
    }, async (context) => {
      if (!isMounted) context.skip('root may not mount here');
      const server = await run.start();
      await run.publishAccepted(10);
      const told = () => operator.calls.map(({ body }) => JSON.parse(body).kind);
      await eventually('the operator to be told of little space', async () => told().length > 0, 10_000);
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
      await eventually('the operator to be told', async () => told().includes('store_full'), 10_000);
      expect(told()).toEqual(['store_filling', 'store_full']);
      rmSync(filler);
      await recover(run, server.exited);
      expect(await run.findings()).toEqual([]);
    });

    it('lets a server that was stopped in order start when it is full, and serve again once there is space', {
      timeout: 60_000,
    }, async (context) => {
      if (!isMounted) context.skip('root may not mount here');
      const server = await run.start();
      await run.publishAccepted(10);
      await server.end('SIGTERM');
      await run.endpoints.nextIncarnation();
      const filler = join(run.dataDir, 'filler');
      const { bavail, bsize } = statfsSync(run.dataDir);
      writeFileSync(filler, Buffer.alloc(bavail * bsize));
      await run.start();
      expect(await run.publish({}, 10_000)).toMatchObject({ kind: 'refused', status: 503 });
      expect(await run.client().call('GET', '/v2/logs')).toMatchObject({
        kind: 'ok',
        json: { events: expect.any(Array) },
      });
      rmSync(filler);
      await eventually('the server to be ready', async () => (await run.readyStatus()) === 200, 30_000);
      await run.publishAccepted(3);
      expect(await run.findings()).toEqual([]);
    });
  },
);
