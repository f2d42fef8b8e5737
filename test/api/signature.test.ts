/** Explains why a receiver would reject a signature, to clients that may read the signing keys. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { signDelivery } from '../../src/protocol/signature.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { OTHER_TOKEN, openWorld, TOKEN, type World } from './support/world.ts';

const url = 'https://app.example/hook';
let clock: SimulatedClock;
let world: World;
beforeEach(async () => {
  clock = new SimulatedClock();
  world = await openWorld({}, { clock });
});
afterEach(() => world.close());

/** The world's projects have the signing keys `sig_1` and `sig_2`. */
function sign(signingKey: string): string {
  const nowS = Math.floor(clock.nowMs() / 1000);
  return signDelivery({ url, body: Buffer.from('é'), signingKey, nowS, jwtId: 'jwt_1', dialect: 'upstash' });
}

async function check(asked: unknown, token = TOKEN) {
  const reply = await world.ask({
    method: 'POST',
    url: '/v2/waypost/signature/verify',
    headers: { authorization: `Bearer ${token}` },
    payload: JSON.stringify(asked),
  });
  return reply.status === 200 ? reply.json : [reply.status, reply.json.error];
}

it('accepts signatures of either key', async () => {
  for (const key of ['sig_1', 'sig_2']) {
    expect(await check({ signature: sign(key), body: 'é', url })).toEqual({ isValid: true });
    expect(await check({ signature: sign(key), body: 'é' })).toEqual({ isValid: true });
  }
});

it('names every claim that fails', async () => {
  const signature = sign('sig_1');
  clock.jumpBy(301_000);
  expect(await check({ signature, body: 'e', url: `${url}/` })).toEqual({
    isValid: false,
    failed: [
      { claim: 'sub', reason: 'is not exactly the URL' },
      { claim: 'exp', reason: 'is not a time in the future' },
      { claim: 'body', reason: 'is not the hash of this body' },
    ],
  });
});

it('uses only the keys of the project of the request', async () => {
  await world.ask({ method: 'POST', url: '/v2/keys/rotate' });
  const rotated = (await world.ask({ method: 'GET', url: '/v2/keys' })).json.next;
  const signature = sign(rotated);
  expect(await check({ signature, body: 'é' })).toEqual({ isValid: true });
  const failed = [{ claim: 'signature', reason: expect.any(String) }];
  expect(await check({ signature, body: 'é' }, OTHER_TOKEN)).toEqual({ isValid: false, failed });
});

it.each([
  [[], 'an object is needed'],
  [{ body: '' }, 'signature must be a string'],
  [{ signature: 'x' }, 'body must be a string'],
  [{ signature: 'x', body: '', url: 1 }, 'url must be a string'],
])('refuses %j', async (asked, reason) => {
  expect(await check(asked)).toEqual([400, `invalid request body: ${reason}`]);
});
