/** The memory for answers is whole again, however an attempt ends that has taken of it (P9, P10). */
import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import type { Outcome } from '../../src/engine/model.ts';
import { claimOf, openDelivery, startEndpoint } from './support.ts';

const KIB = 1024;
const MEMORY_BYTES = 256 * KIB;
/** What one answer may take of it, while nobody else does, is less than half: it grows by doubling. */
const ANSWER_BYTES = 96 * KIB;

/** Each sends most of an answer, and then does what ends the attempt. */
const ENDS: [how: string, kind: Outcome['kind'], end: (response: ServerResponse, abort: () => void) => void][] = [
  ['the endpoint breaks the connection off', 'unreachable', (response) => response.destroy()],
  ['the endpoint says no more', 'unreachable', () => {}],
  ['the endpoint breaks the rules', 'unreachable', (response) => response.socket?.write('no chunk\r\n')],
  ['the attempt is interrupted', 'interrupted', (_, abort) => abort()],
  ['the answer is longer than is read', 'answered', (response) => response.write(Buffer.alloc(ANSWER_BYTES))],
  ['the answer is complete', 'answered', (response) => response.end()],
];

it.each(ENDS)('when %s', async (_, kind, end) => {
  const isLast = { now: false };
  const aborts: AbortController[] = [];
  const endpoint = await startEndpoint((response) => {
    response.writeHead(500);
    if (isLast.now) {
      response.end(Buffer.alloc(ANSWER_BYTES));
      return;
    }
    response.write(Buffer.alloc(ANSWER_BYTES - KIB), () => end(response, () => aborts.at(-1)?.abort()));
  });
  const delivery = openDelivery({ responseMemoryBytesMax: MEMORY_BYTES, responseBytesMax: ANSWER_BYTES });
  const attempt = (timeoutMs: number) => {
    const abort = new AbortController();
    aborts.push(abort);
    const settings = { timeoutMs };
    return delivery.attempt(claimOf(endpoint.origin, { settings }), abort.signal);
  };
  // Each of them has more than a tenth of the memory: with what they kept, the last would be cut off.
  for (let nth = 0; nth < 10; nth += 1) {
    const outcome = await attempt(kind === 'unreachable' ? 150 : 30_000);
    expect(outcome.kind).toBe(kind);
    if (outcome.kind === 'answered') outcome.release?.();
  }
  isLast.now = true;
  const last = await attempt(30_000);
  expect(last.kind === 'answered' && last.body.length).toBe(ANSWER_BYTES);
});
