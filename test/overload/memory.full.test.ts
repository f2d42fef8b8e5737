/** Each thread of the real process releases memory when it is idle (P10). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { WaypostProcess } from '../support/waypost-process.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

it('P10: each thread that holds much collects when nothing happens', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-idle-'));
  endings.push(() => rmSync(dataDir, { recursive: true, force: true }));
  const preload = new URL('./report-collections.ts', import.meta.url);
  const server = new WaypostProcess(['dev', '--port', '0', '--data-dir', dataDir, '--log-format', 'json'], {
    NODE_OPTIONS: `--import=${preload}`,
  });
  endings.push(() => server.kill());
  await server.url();
  for (const thread of ['the one that serves', "the database's"].keys()) {
    const line = new RegExp(`^thread ${thread} of \\d+ bytes has collected$`, 'm');
    await eventually(
      () => `${line}; it said: ${server.stderr}`,
      () => line.test(server.stderr),
    );
  }
});
