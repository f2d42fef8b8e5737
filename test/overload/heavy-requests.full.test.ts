/** Requests of allowed size with the maximum of some element: each gets a response, and none a 5xx (P11). */
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
])('requests with heavy %s get a status below 500', async (_what, make) => {
  const wrong: unknown[] = [];
  for (const request of make()) {
    const { status } = await send(server.url, request);
    if (status < 200 || status >= 500) wrong.push([request.name, status]);
  }
  expect(wrong).toEqual([]);
});
