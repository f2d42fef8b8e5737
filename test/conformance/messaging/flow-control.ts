/** How many at a time, and how many in a period (contract M 29.138 to 29.147). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Subject } from '../support/subject.ts';

function limited(value: string): Record<string, string> {
  return { 'Upstash-Flow-Control-Key': 'key', 'Upstash-Flow-Control-Value': value };
}

/** The limits that a message with this flow control value shows. */
async function shown(server: Subject, value: string): Promise<Record<string, unknown>> {
  const id = await server.publish('/a', { 'Upstash-Delay': '1h', ...limited(value) });
  const { flowControlKey, parallelism, rate, period } = await server.get(`/v2/messages/${id}`);
  return { flowControlKey, parallelism, rate, period };
}

export const flowControl: Section = {
  title: 'Flow control',
  statements: [
    statement(
      'M138',
      'With parallelism 1, messages of a key never overlap, whatever their destinations.',
      async (server) => {
        const release = server.endpoint.hold('/a');
        await server.publish('/a', limited('parallelism=1'));
        await server.publish('/b', limited('parallelism=1'));
        await server.endpoint.arrival('/a');
        await server.quiet();
        expect(server.endpoint.to('/b')).toEqual([]);
        release();
        await server.endpoint.arrival('/b');
      },
    ),

    statement('M139', 'With a rate of 1 in 5 s, messages start at least 5 s apart.', async (server) => {
      for (let nth = 1; nth <= 3; nth += 1) await server.publish('/a', limited('rate=1,period=5s'));
      await server.endpoint.arrival('/a', 1);
      for (let nth = 2; nth <= 3; nth += 1) {
        server.clock.advance(4999);
        await server.quiet();
        expect(server.endpoint.to('/a')).toHaveLength(nth - 1);
        server.clock.advance(1001); // periods may start at whole seconds
        await server.endpoint.arrival('/a', nth);
      }
    }),

    statement('M140', 'The size of the wait list is the number of waiting messages.', async (server) => {
      const release = server.endpoint.hold('/a');
      for (let nth = 1; nth <= 3; nth += 1) await server.publish('/a', limited('parallelism=1'));
      await server.endpoint.arrival('/a');
      expect(await server.get('/v2/flowControl/key')).toMatchObject({ waitListSize: 2, parallelismCount: 1 });
      release();
      await server.endpoint.arrival('/a', 2);
      expect(await server.get('/v2/flowControl/key')).toMatchObject({ waitListSize: 1, parallelismCount: 1 });
    }),

    statement('M141', 'A message shows its limits, and the period in seconds.', async (server) => {
      const key = { flowControlKey: 'key' };
      expect(await shown(server, 'parallelism=3')).toEqual({ ...key, parallelism: 3, rate: undefined, period: 1 });
      expect(await shown(server, 'rate=2, period=1h30m3s')).toEqual({
        ...key,
        parallelism: undefined,
        rate: 2,
        period: 5403,
      });
    }),

    statement('M142', 'A value without a limit gets 400 with the documented text.', async (server) => {
      const target = `/v2/publish/${server.destination('/a')}`;
      const { status, json } = await server.ask('POST', target, { headers: limited('period=5s') });
      expect(status).toBe(400);
      expect(json.error).toBe(
        'Upstash-Flow-Control-Value should be either rate=X or parallelism=Y, or both as comma-separated values',
      );
    }),

    statement('M143', 'A paused key delivers none of its messages; after resume it does.', async (server) => {
      await server.post('/v2/flowControl/key/pause');
      await server.publish('/a', limited('parallelism=1'));
      await server.quiet();
      expect(server.endpoint.to('/a')).toEqual([]);
      expect((await server.get('/v2/flowControl/key')).isPaused).toBe(true);
      await server.post('/v2/flowControl/key/resume');
      await server.endpoint.arrival('/a');
      expect((await server.get('/v2/flowControl/key')).isPaused).toBe(false);
    }),

    statement(
      'M144',
      'Pinned values ignore the values of messages; unpinning one leaves the other pinned.',
      async (server) => {
        const key = '/v2/flowControl/key';
        await server.post(`${key}/pin?parallelism=2&rate=5&period=10`);
        await server.publish('/a', { 'Upstash-Delay': '1h', ...limited('parallelism=7,rate=9,period=3s') });
        const pinned = { parallelismMax: 2, rateMax: 5, ratePeriod: 10, isPinnedParallelism: true, isPinnedRate: true };
        expect(await server.get(key)).toMatchObject(pinned);
        for (const parts of ['', '?parallelism=true']) await server.post(`${key}/unpin${parts}`);
        expect(await server.get(key)).toMatchObject({ ...pinned, isPinnedParallelism: false });
        await server.publish('/a', { 'Upstash-Delay': '1h', ...limited('parallelism=7,rate=9,period=3s') });
        expect(await server.get(key)).toMatchObject({ ...pinned, parallelismMax: 7, isPinnedParallelism: false });
      },
    ),

    statement('M145', 'Resetting the rate sets its count to 0.', async (server) => {
      await server.publish('/a', limited('rate=10,period=1h'));
      await server.endpoint.arrival('/a');
      expect((await server.get('/v2/flowControl/key')).rateCount).toBe(1);
      await server.post('/v2/flowControl/key/resetRate');
      expect((await server.get('/v2/flowControl/key')).rateCount).toBe(0);
    }),

    statement('M146', 'A key always has its eleven members; an unknown key gets 404.', async (server) => {
      await server.publish('/a', { 'Upstash-Delay': '1h', ...limited('parallelism=4') });
      expect(await server.get('/v2/flowControl/key')).toEqual({
        flowControlKey: 'key',
        waitListSize: 0,
        parallelismMax: 4,
        parallelismCount: 0,
        rateMax: 0,
        rateCount: 0,
        ratePeriod: expect.any(Number),
        ratePeriodStart: 0,
        isPaused: false,
        isPinnedParallelism: false,
        isPinnedRate: false,
      });
      expect((await server.ask('GET', '/v2/flowControl/unknown')).status).toBe(404);
    }),

    statement('M147', 'The global parallelism shows its maximum and its count.', async (server) => {
      server.endpoint.hold('/a');
      await server.publish('/a');
      await server.endpoint.arrival('/a');
      const answer = await server.get('/v2/globalParallelism');
      expect(answer).toEqual({ parallelismMax: expect.any(Number), parallelismCount: 1 });
    }),
  ],
};
