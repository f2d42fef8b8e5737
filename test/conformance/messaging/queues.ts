/** Messages that keep their order (contract M 29.96 to 29.104). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';

export const queues: Section = {
  title: 'Queues',
  statements: [
    statement('M96', 'Enqueueing creates a missing queue, with parallelism 1.', async (server) => {
      await server.enqueue('fresh', '/a');
      expect((await server.get('/v2/queues/fresh')).parallelism).toBe(1);
    }),

    statement(
      'M97',
      'With parallelism 1 a message waits until the previous one is finished, including its retries.',
      async (server) => {
        server.endpoint.replies('/first', { status: 500 }, { status: 200 });
        const first = await server.enqueue('queue', '/first', { 'Upstash-Retry-Delay': '5000' });
        const second = await server.enqueue('queue', '/second');
        await server.retryPlanned(first);
        await server.quiet();
        expect(await server.states(second)).toEqual(['CREATED']);
        server.clock.advance(5000);
        expect((await server.finished(second)).at(-1)).toBe('DELIVERED');
        expect((await server.states(first)).at(-1)).toBe('DELIVERED');
      },
    ),

    statement('M98', 'It also waits for the callback of the previous one.', async (server) => {
      const release = server.endpoint.hold('/callback');
      await server.enqueue('queue', '/first', { 'Upstash-Callback': server.destination('/callback') });
      const second = await server.enqueue('queue', '/second');
      await server.endpoint.arrival('/callback');
      await server.quiet();
      expect(await server.states(second)).toEqual(['CREATED']);
      release();
      await server.endpoint.arrival('/second');
    }),

    statement('M99', 'With parallelism 2, two messages run at a time and never three.', async (server) => {
      await server.post('/v2/queues', { queueName: 'queue', parallelism: 2 });
      const release = server.endpoint.hold('/a');
      for (let nth = 1; nth <= 3; nth += 1) await server.enqueue('queue', '/a');
      await server.endpoint.arrival('/a', 2);
      await server.quiet();
      expect(server.endpoint.to('/a')).toHaveLength(2);
      release();
      await server.endpoint.arrival('/a', 3);
    }),

    statement(
      'M100',
      'A paused queue accepts messages and delivers none; after resume it delivers them in order.',
      async (server) => {
        await server.enqueue('queue', '/a?n=0');
        await server.endpoint.arrival('/a');
        await server.post('/v2/queues/queue/pause');
        for (let nth = 1; nth <= 3; nth += 1) await server.enqueue('queue', `/a?n=${nth}`);
        await server.quiet();
        expect(await server.get('/v2/queues/queue')).toMatchObject({ paused: true, lag: 3 });
        expect(server.endpoint.to('/a')).toHaveLength(1);
        await server.post('/v2/queues/queue/resume');
        await server.endpoint.arrival('/a', 4);
        expect(server.endpoint.to('/a').map(({ target }) => target)).toEqual(['/a?n=0', '/a?n=1', '/a?n=2', '/a?n=3']);
      },
    ),

    statement('M101', 'A queue always has its six members, with the right types.', async (server) => {
      await server.post('/v2/queues', { queueName: 'queue' });
      const shape = {
        name: 'queue',
        createdAt: server.clock.nowMs(),
        updatedAt: server.clock.nowMs(),
        parallelism: 1,
        paused: false,
        lag: 0,
      };
      expect(await server.get('/v2/queues/queue')).toEqual(shape);
      expect(await server.get('/v2/queues')).toEqual([shape]);
    }),

    statement('M102', 'A queue name with a space or a slash gets 400.', async (server) => {
      for (const queueName of ['a b', 'a/b']) {
        const body = JSON.stringify({ queueName });
        expect((await server.ask('POST', '/v2/queues', { body })).status, queueName).toBe(400);
        const target = `/v2/enqueue/${encodeURIComponent(queueName)}/${server.destination('/a')}`;
        expect((await server.ask('POST', target)).status, queueName).toBe(400);
      }
    }),

    statement('M103', 'Deleting an unknown queue gets 200.', async (server) => {
      expect((await server.ask('DELETE', '/v2/queues/nobodys')).status).toBe(200);
    }),

    statement('M104', 'Neither an enqueue nor a schedule changes the parallelism of a queue.', async (server) => {
      await server.post('/v2/queues', { queueName: 'queue', parallelism: 5 });
      await server.enqueue('queue', '/a');
      const headers = { 'Upstash-Cron': '* * * * *', 'Upstash-Queue-Name': 'queue' };
      await server.post(`/v2/schedules/${server.destination('/b')}`, undefined, { headers });
      server.clock.advance(60_000);
      await server.endpoint.arrival('/b');
      expect((await server.get('/v2/queues/queue')).parallelism).toBe(5);
    }),
  ],
};
