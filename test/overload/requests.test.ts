/** The memory of the real process that clients can occupy (P10). */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ListeningProcess, residentMebibytes } from '../../bench/child-process.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from '../../bench/waypost-process.ts';

let folder: string;
let server: ListeningProcess;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waypost-overload-'));
  server = await startWaypost({ dataDir: folder });
});
afterAll(async () => {
  await server.end('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const HEAD = `Host: waypost\r\nAuthorization: Bearer ${DEVELOPMENT_TOKEN}\r\n`;

/** Sends `head` and then `piece`, `count` times, at the server's pace. Resolves to the answer's first line. */
async function pour(head: string, piece: string, count: number, end: string): Promise<string> {
  const socket = net.connect(Number(new URL(server.url).port), '127.0.0.1');
  const answered = once(socket, 'data');
  socket.write(head);
  for (let nth = 0; nth < count; nth += 1) {
    if (!socket.write(piece)) await once(socket, 'drain');
  }
  socket.write(end);
  const [answer] = await answered;
  socket.destroy();
  return String(answer).split('\r\n', 1)[0] ?? '';
}

describe('P10: memory stays bounded while a caller', () => {
  it('sends its body one byte at a time', async () => {
    const before = residentMebibytes(server.pid);
    const head = `POST /v2/publish/http://127.0.0.1:1 HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n`;
    const bodies = Array.from({ length: 4 }, () => pour(head, '1\r\na\r\n'.repeat(1_000), 200, '0\r\n\r\n'));
    expect(await Promise.all(bodies)).toEqual(bodies.map(() => 'HTTP/1.1 200 OK'));
    // 800 KB of bodies: more than 300 MiB when every byte is kept as a piece of its own.
    expect(residentMebibytes(server.pid) - before).toBeLessThan(150);
  });

  it.each([
    ['millions of empty objects', '{},', 'at most 250000 JSON values'],
    ['millions of arrays in arrays', '[', 'at most 500 levels of JSON'],
  ])('sends a batch of %s', async (_what, unit, rule) => {
    const before = residentMebibytes(server.pid);
    const reply = await fetch(`${server.url}/v2/batch`, {
      method: 'POST',
      headers: { authorization: `Bearer ${DEVELOPMENT_TOKEN}` },
      body: `[${unit.repeat(24_000_000 / unit.length)}`,
    });
    expect(reply.status).toBe(400);
    expect(await reply.text()).toContain(rule);
    // Parsed, the first are 450 MB and the second more than a gigabyte.
    expect(residentMebibytes(server.pid) - before).toBeLessThan(250);
  });
});
