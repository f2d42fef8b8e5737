/** What a burst leaves is given back once it is over (P10), in each thread of the real process. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { DEVELOPMENT_TOKEN } from '../../bench/waypost-process.ts';
import { eventually } from '../support/eventually.ts';
import { WaypostProcess } from '../support/waypost-process.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

it('P10: each thread that a burst has filled collects when nothing happens any more', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-idle-'));
  endings.push(() => rmSync(dataDir, { recursive: true, force: true }));
  const preload = new URL('./report-collections.ts', import.meta.url);
  const server = new WaypostProcess(['dev', '--port', '0', '--data-dir', dataDir, '--log-format', 'json'], {
    NODE_OPTIONS: `--import=${preload}`,
  });
  endings.push(() => server.kill());
  const url = await server.url();
  // All at once: of what comes one after the other the engine collects some by itself, and nobody knows how much.
  const item = {
    destination: 'http://127.0.0.1:9/',
    headers: { 'Upstash-Delay': '1h' },
    body: 'x'.repeat(8 * 1024 * 1024),
  };
  const reply = await fetch(`${url}/v2/batch`, {
    method: 'POST',
    headers: { authorization: `Bearer ${DEVELOPMENT_TOKEN}` },
    body: JSON.stringify(Array(10).fill(item)),
  });
  expect(reply.status).toBe(200);
  for (const thread of ['the one that serves', "the database's"].keys()) {
    const line = `collected in thread ${thread}\n`;
    await eventually(
      () => `${line}; it said: ${server.stderr}`,
      () => server.stderr.includes(line),
    );
  }
});
