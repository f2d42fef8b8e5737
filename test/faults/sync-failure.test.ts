import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buildShim, type Shim, shimObstacle } from '../../bench/preload/build.ts';
import { FaultyRun, SOUND } from './faulty-run.ts';

const obstacle = shimObstacle();

describe.skipIf(obstacle !== undefined)(
  `a sync that fails${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`,
  () => {
    let shim: Shim;
    let run: FaultyRun;
    beforeEach(async () => {
      shim = buildShim(new URL('./broken-disk.c', import.meta.url));
      run = await FaultyRun.prepare((folder) => ({ ...shim.env, WAYPOST_FAULTS: folder }));
    });
    afterEach(async () => {
      await run.close();
      shim.remove();
    });

    it('P1: ends the process rather than trusting the file, and a restart has everything that was acknowledged', {
      timeout: 60_000,
    }, async () => {
      const server = await run.start();
      await run.publishAccepted(30);

      const fault = join(run.folder, 'sync-fails');
      writeFileSync(fault, '');
      const tag = 'under a failed sync';
      run.ledger.attempted(tag);
      const reply = await run.client().publish(run.endpoints.ok, tag);
      // The data reached the file, its sync did not hold: after a restart the message may be there or not.
      run.ledger.unknown(tag);
      expect(reply.kind).not.toBe('ok');
      if (reply.kind === 'refused') expect(reply.status).toBe(503);
      const exit = await server.exited;
      expect(exit.code).not.toBe(0);
      expect(exit.code).not.toBeNull();

      rmSync(fault);
      await run.endpoints.nextIncarnation();
      await run.start();
      await run.publishAccepted(3);
      expect(await run.verdict()).toMatchObject(SOUND);
    });
  },
);
