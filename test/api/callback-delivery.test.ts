/** Delivers callbacks to a real endpoint over real connections, and reads them with the receiver of the official client. */
import { Receiver } from '@upstash/qstash';
import { expect, it, onTestFinished } from 'vitest';
import { createDelivery } from '../../src/delivery/delivery.ts';
import { deliveryOptions, type Received, startEndpoint } from '../delivery/support.ts';
import { eventually } from '../support/eventually.ts';
import { openWorld, type World } from './support/world.ts';

/** That of every project of the world. */
const SIGNING_KEY = 'sig_1';
/** Its network is not among those that the delivery may call. */
const FORBIDDEN = 'http://10.1.2.3/';

async function openRealWorld(): Promise<World> {
  const delivery = createDelivery(deliveryOptions({ signingKey: () => SIGNING_KEY }));
  const world = await openWorld({ checkDestination: () => () => undefined }, { delivery });
  onTestFinished(async () => {
    await world.close();
    await delivery.close();
  });
  return world;
}

function payloadOf({ body }: Received): Record<string, unknown> {
  return JSON.parse(body.toString());
}

it('a callback arrives signed, as JSON, with its own id and count and what is forwarded to it', async () => {
  const endpoint = await startEndpoint((response, { url }) => {
    const attempts = endpoint.received.filter((one) => one.url === url).length;
    response.writeHead(url === '/told' && attempts === 1 ? 503 : 200, { 'x-answer': 'yes' }).end('häl');
  });
  const world = await openRealWorld();
  const callbackUrl = `${endpoint.origin}/told`;
  const messageId = await world.publish(
    `${endpoint.origin}/work`,
    {
      'upstash-callback': callbackUrl,
      'upstash-callback-retry-delay': '0',
      'upstash-callback-forward-x-key': 'mine',
      'content-type': 'text/x',
    },
    Buffer.from([0xff, 0x00]),
  );
  const callbacks = await eventually('two attempts of the callback', () => {
    const found = endpoint.received.filter(({ url }) => url === '/told');
    return found.length === 2 && found;
  });
  const receiver = new Receiver({ currentSigningKey: SIGNING_KEY, nextSigningKey: 'sig_2' });
  for (const { headers, body, method } of callbacks) {
    const signature = String(headers['upstash-signature']);
    expect(await receiver.verify({ signature, body: body.toString(), url: callbackUrl })).toBe(true);
    expect(method).toBe('POST');
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'x-key': 'mine' });
  }
  const [first, second] = callbacks.map(({ headers }) => headers);
  expect([first?.['upstash-retried'], second?.['upstash-retried']]).toEqual(['0', '1']);
  expect(first?.['upstash-message-id']).toBe(second?.['upstash-message-id']);
  expect(first?.['upstash-message-id']).not.toBe(messageId);
  expect(callbacks.map(payloadOf)[0]).toMatchObject({
    status: 200,
    header: { 'X-Answer': ['yes'] },
    body: Buffer.from('häl').toString('base64'),
    retried: 0,
    sourceMessageId: messageId,
    sourceHeader: { 'Content-Type': ['text/x'] },
    sourceBody: Buffer.from([0xff, 0x00]).toString('base64'),
  });
});

it('an attempt that the address guard refuses is told of like any other', async () => {
  const endpoint = await startEndpoint();
  const world = await openRealWorld();
  await world.publish(FORBIDDEN, {
    'upstash-callback': `${endpoint.origin}/told`,
    'upstash-failure-callback': `${endpoint.origin}/failed`,
    'upstash-retries': '0',
  });
  await eventually('both callbacks', () => endpoint.received.length === 2);
  for (const received of endpoint.received) {
    const { status, header, body } = payloadOf(received);
    expect({ status, header }).toEqual({ status: 0, header: {} });
    expect(Buffer.from(String(body), 'base64').toString()).toMatch(/address/);
  }
  expect(endpoint.received.map(({ url }) => url).toSorted()).toEqual(['/failed', '/told']);
});

it('a callback to an address that the guard refuses fails as an attempt and lies in the DLQ', async () => {
  const endpoint = await startEndpoint();
  const world = await openRealWorld();
  await world.publish(endpoint.origin, { 'upstash-callback': FORBIDDEN, 'upstash-callback-retries': '0' });
  const dead = await eventually('the DLQ entry', async () => {
    const { json } = await world.ask({ method: 'GET', url: `/v2/dlq?url=${FORBIDDEN}` });
    return json.messages[0];
  });
  expect(dead).toMatchObject({ url: FORBIDDEN, responseStatus: 0, responseBody: expect.stringMatching(/address/) });
});

it('a payload larger than any message may be arrives whole', async () => {
  const endpoint = await startEndpoint((response) => response.end(Buffer.alloc(60_000, 'a')));
  const world = await openRealWorld();
  const body = Buffer.alloc(100_000, 'b');
  await world.publish(`${endpoint.origin}/work`, { 'upstash-callback': `${endpoint.origin}/told` }, body);
  const callback = await eventually('the callback', () => endpoint.received.find(({ url }) => url === '/told'));
  expect(callback.body.length).toBeGreaterThan(200_000);
  expect(payloadOf(callback)['sourceBody']).toBe(body.toString('base64'));
});
