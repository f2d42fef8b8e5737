/** Requests of allowed size with as much of something as fits: each is answered, and nobody is told of a fault of ours (P11). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ListeningProcess } from '../../bench/child-process.ts';
import { send } from '../../bench/loop/loop-blocks.ts';
import { heavyHeads, heavyJson } from '../../bench/loop/requests.ts';
import { startWaypost } from '../../bench/waypost-process.ts';

let folder: string;
let server: ListeningProcess;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waypost-heavy-'));
  server = await startWaypost({ dataDir: folder });
});
afterAll(async () => {
  await server.end('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

it.each([
  ['heads', heavyHeads],
  ['JSON', heavyJson],
])('requests with heavy %s are answered below 500', async (_what, make) => {
  const wrong: unknown[] = [];
  for (const request of make()) {
    const { status } = await send(server.url, request);
    if (status < 200 || status >= 500) wrong.push([request.name, status]);
  }
  expect(wrong).toEqual([]);
});
