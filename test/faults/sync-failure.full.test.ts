import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { describeBrokenDisk } from './faulty-run.ts';

describeBrokenDisk('a sync that fails', (prepared) => {
  it('P1: ends the process rather than trusting the file, and a restart has everything that was acknowledged', {
    timeout: 60_000,
  }, async () => {
    const run = prepared();
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
    expect(await run.findings()).toEqual([]);
  });
});
