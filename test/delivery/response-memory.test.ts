/** An attempt frees its response memory, however it ends (P9, P10). */
import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import type { Outcome } from '../../src/engine/model.ts';
import { claimOf, openDelivery, startEndpoint } from './support.ts';

const KIB = 1024;
const MEMORY_BYTES = 256 * KIB;
/** Less than half of the memory, which is what one response may take alone: its buffer grows by doubling. */
const RESPONSE_BYTES = 96 * KIB;

/** Each endpoint sends most of a response, then ends the attempt. */
const ENDS: [how: string, kind: Outcome['kind'], end: (response: ServerResponse, abort: () => void) => void][] = [
  ['the endpoint closes the connection', 'unreachable', (response) => response.destroy()],
  ['the endpoint sends nothing more', 'unreachable', () => {}],
  ['the endpoint sends an invalid chunk', 'unreachable', (response) => response.socket?.write('no chunk\r\n')],
  ['the attempt is interrupted', 'interrupted', (_, abort) => abort()],
  ['the response exceeds its limit', 'responded', (response) => response.write(Buffer.alloc(RESPONSE_BYTES))],
  ['the response is complete', 'responded', (response) => response.end()],
];

it.each(ENDS)('when %s', async (_, kind, end) => {
  const isLast = { now: false };
  const aborts: AbortController[] = [];
  const endpoint = await startEndpoint((response) => {
    response.writeHead(500);
    if (isLast.now) {
      response.end(Buffer.alloc(RESPONSE_BYTES));
      return;
    }
    response.write(Buffer.alloc(RESPONSE_BYTES - KIB), () => end(response, () => aborts.at(-1)?.abort()));
  });
  const delivery = openDelivery({ responseMemoryBytesMax: MEMORY_BYTES, responseBytesMax: RESPONSE_BYTES });
  const attempt = (timeoutMs: number) => {
    const abort = new AbortController();
    aborts.push(abort);
    const settings = { timeoutMs };
    return delivery.attempt(claimOf(endpoint.origin, { settings }), abort.signal);
  };
  // Each response takes more than a tenth of the memory: if they kept it, the last one would be truncated.
  for (let nth = 0; nth < 10; nth += 1) {
    const outcome = await attempt(kind === 'unreachable' ? 150 : 30_000);
    expect(outcome.kind).toBe(kind);
    if (outcome.kind === 'responded') outcome.release?.();
  }
  isLast.now = true;
  const last = await attempt(30_000);
  expect(last.kind === 'responded' && last.body.length).toBe(RESPONSE_BYTES);
});
