import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LIMITS, openWorld, type Reply, type World } from './support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.close());

function post(path: string, headers: Record<string, string> = {}, payload: string | Buffer = ''): Promise<Reply> {
  return world.ask({ method: 'POST', url: `/v2/publish/${path}`, headers, payload });
}

async function expectRefused(reply: Promise<Reply>, status: number, error: string | RegExp): Promise<void> {
  const before = await world.countStored();
  const { status: got, json } = await reply;
  expect([got, json.error]).toEqual([status, expect.stringMatching(error)]);
  expect(await world.countStored()).toBe(before);
}

describe('a publish is refused, and stores nothing, with', () => {
  it('several things wrong, of which the destination is told before the headers (contract M 25)', async () => {
    const headers = { 'upstash-retries': 'many' };
    await expectRefused(post('http://127.0.0.1:1/', headers), 400, /loopback/);
    await expectRefused(post('no-such-group', headers), 400, /Upstash-Retries/);
    const tooLarge = Buffer.alloc(LIMITS.messageBytesMax + 1);
    await expectRefused(post('https://slow.example/', headers, tooLarge), 400, /Upstash-Retries/);
  });
});

it('returns 404 with the id for an unknown message', async () => {
  const reply = await world.ask({ method: 'GET', url: '/v2/messages/msg_x%2Fy' });
  expect([reply.status, reply.json.error]).toEqual([404, 'message msg_x/y not found']);
});
