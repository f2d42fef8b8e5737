/** Responses with defects that curl and Go accept are accepted, since the endpoint did its work. No other defects are. */
import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../src/engine/model.ts';
import { claimOf, KEEPS_BODY, onEachHead, openDelivery, startTcp, untouched } from './support.ts';

const HEAD = 'HTTP/1.1 200 OK\r\n';

function textOf(outcome: Outcome): string {
  return outcome.kind === 'responded' ? Buffer.from(outcome.body).toString() : JSON.stringify(outcome);
}

/** Sends `response` for each request on a connection that stays open, in chunks of `chunkBytes`. */
async function startResponder(response: string, chunkBytes = response.length) {
  return await startTcp((socket) => {
    socket.setNoDelay(true);
    onEachHead(socket, () => {
      for (let at = 0; at < response.length; at += chunkBytes)
        socket.write(response.slice(at, at + chunkBytes), 'latin1');
    });
  });
}

const CHUNKS = '2\r\nok\r\n0\r\n\r\n';
const DEFECTIVE: [string, string, Record<string, unknown[]>][] = [
  [
    'a length beside chunks, which decide',
    `${HEAD}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKS}`,
    { 'Transfer-Encoding': ['chunked'] },
  ],
  [
    'chunks before a length',
    `${HEAD}Transfer-Encoding: chunked\r\nX-A: b\r\nContent-Length: 3\r\n\r\n${CHUNKS}`,
    { 'Transfer-Encoding': ['chunked'], 'X-A': ['b'] },
  ],
  [
    'its length twice',
    `${HEAD}Content-Length: 2\r\nX-A: b\r\ncontent-length: 2\r\n\r\nok`,
    { 'Content-Length': ['2'], 'X-A': ['b'] },
  ],
  ['its length twice in one line', `${HEAD}Content-Length: 2, 2\r\n\r\nok`, { 'Content-Length': ['2'] }],
  [
    'a folded header line',
    `${HEAD}X-A: b \r\n\t c\r\n d\r\nContent-Length: 2\r\n\r\nok`,
    { 'X-A': ['b  c d'], 'Content-Length': ['2'] },
  ],
  [
    'line ends without CR',
    'HTTP/1.1 200 OK\nX-A: b\nContent-Length: 2\n\nok',
    { 'X-A': ['b'], 'Content-Length': ['2'] },
  ],
  [
    'a folded transfer coding beside a length',
    `${HEAD}Content-Length: 3\r\nTransfer-Encoding:\r\n chunked\r\n\r\n${CHUNKS}`,
    { 'Transfer-Encoding': ['chunked'] },
  ],
  [
    'a value that ends in the last byte of a letter in UTF-8',
    `${HEAD}Content-Length: 2\nX-A: \xc3\xa0\r\n\r\nok`,
    { 'X-A': [expect.stringMatching(/^(?:\xc3\xa0|à)$/)], 'Content-Length': ['2'] },
  ],
  ['one line end without CR', `${HEAD}X-A: b\nContent-Length: 2\r\n\r\nok`, { 'X-A': ['b'], 'Content-Length': ['2'] }],
  [
    'a blank before a colon',
    `${HEAD}X-A : b\r\nContent-Length \t: 2\r\n\r\nok`,
    { 'X-A': ['b'], 'Content-Length': ['2'] },
  ],
];

describe('a response with', () => {
  it.each(DEFECTIVE)('%s is read', async (_title, response, header) => {
    const endpoint = await startResponder(response);
    const outcome = await openDelivery().attempt(claimOf(endpoint.origin, KEEPS_BODY), untouched());
    expect(textOf(outcome)).toBe('ok');
    expect(outcome).toMatchObject({ kind: 'responded', status: 200 });
    expect(outcome.kind === 'responded' && { ...outcome.header }).toEqual(header);
  });

  it.each(DEFECTIVE)('%s is read byte by byte, after interim responses', async (_title, response) => {
    const interim = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\nLink: x\n\n';
    const endpoint = await startResponder(`${interim}${response}`, 1);
    expect(textOf(await openDelivery().attempt(claimOf(endpoint.origin, KEEPS_BODY), untouched()))).toBe('ok');
  });

  it.each(DEFECTIVE)(
    '%s closes its connection, so that no later bytes count as another response',
    async (_title, response) => {
      const endpoint = await startResponder(response);
      const delivery = openDelivery();
      for (const nth of [1, 2]) {
        await delivery.attempt(claimOf(endpoint.origin), untouched());
        expect(endpoint.state.connections).toBe(nth);
      }
    },
  );

  it('a defect hides a second response that follows it', async () => {
    const [[, response]] = DEFECTIVE as [(typeof DEFECTIVE)[number]];
    const endpoint = await startResponder(`${response}HTTP/1.1 299 Smuggled\r\nContent-Length: 0\r\n\r\n`);
    const delivery = openDelivery();
    for (const nth of [1, 2]) {
      const outcome = await delivery.attempt(claimOf(endpoint.origin), untouched());
      expect([outcome.kind === 'responded' && outcome.status, endpoint.state.connections]).toEqual([200, nth]);
    }
  });
});

it('keeps the connection after a response without a defect', async () => {
  const endpoint = await startResponder(`${HEAD}X-A: b:c d\r\nContent-Length: 2\r\n\r\nok`);
  const delivery = openDelivery();
  for (let nth = 0; nth < 2; nth++) await delivery.attempt(claimOf(endpoint.origin), untouched());
  expect(endpoint.state.connections).toBe(1);
});

it('leaves a body that looks like a defective head unchanged', async () => {
  const body = 'a : b\n\nContent-Length: 1\nContent-Length: 2\n\n';
  const endpoint = await startResponder(`${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`);
  expect(textOf(await openDelivery().attempt(claimOf(endpoint.origin, KEEPS_BODY), untouched()))).toBe(body);
});

describe('the error of an unreadable response says that', () => {
  it.each([
    ['it has several different Content-Length', `${HEAD}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok`],
    ['its first header line begins with a blank', `${HEAD} X-A: b\r\nContent-Length: 2\r\n\r\nok`],
    ['the length of its body differs from Content-Length', `${HEAD}Connection: close\r\nContent-Length: 9\r\n\r\nok`],
    ['its headers are incomplete', `${HEAD}X-A: b\r\n`],
    ['its headers are too large', `${HEAD}${'X-A: b\r\n'.repeat(10_000)}`],
    ['not valid HTTP/1.1 (Invalid header token)', `${HEAD}X-A\r\n\r\n`],
    ['not valid HTTP/1.1 (Expected HTTP/', 'SSH-2.0-OpenSSH_9.9\r\n'],
  ])('%s', async (reason, response) => {
    const endpoint = await startTcp((socket) => onEachHead(socket, () => socket.end(response)));
    const outcome = await openDelivery().attempt(claimOf(endpoint.origin), untouched());
    expect(outcome).toMatchObject({ kind: 'unreachable', reason: 'malformed' });
    expect(outcome).toHaveProperty('error', expect.stringContaining(`malformed response: ${reason}`));
  });
});
