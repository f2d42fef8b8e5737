/** Resuming a paused queue, and an active one, which is unaffected (contract I 3.1, 4.1). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';

export const queueResume: Section = {
  title: 'Queue resume',
  statements: [
    statement('I1', 'Resuming a paused queue makes it active.', async (server) => {
      await server.post('/v2/queues', { queueName: 'queue', paused: true });
      const { status } = await server.ask('POST', '/v2/queues/queue/resume');
      expect(status).toBe(200);
      expect((await server.get('/v2/queues/queue')).paused).toBe(false);
    }),

    statement('I2', 'Delivery then continues from the earliest undelivered message, in order.', async (server) => {
      await server.enqueue('queue', '/a?n=0');
      await server.endpoint.arrival('/a');
      await server.post('/v2/queues/queue/pause');
      for (let nth = 1; nth <= 4; nth += 1) await server.enqueue('queue', `/a?n=${nth}`);
      await server.post('/v2/queues/queue/resume');
      await server.endpoint.arrival('/a', 5);
      const targets = server.endpoint.to('/a').map(({ target }) => target);
      expect(targets).toEqual(['/a?n=0', '/a?n=1', '/a?n=2', '/a?n=3', '/a?n=4']);
    }),

    statement('I3', 'A message that was failing when the queue was paused is the earliest one.', async (server) => {
      server.endpoint.replies('/first', { status: 500 }, { status: 200 });
      const first = await server.enqueue('queue', '/first', { 'Upstash-Retry-Delay': '1000' });
      const second = await server.enqueue('queue', '/second');
      await server.retryPlanned(first);
      await server.post('/v2/queues/queue/pause');
      server.clock.advance(60_000);
      await server.quiet();
      expect(server.endpoint.to('/first')).toHaveLength(1);
      const release = server.endpoint.hold('/first');
      await server.post('/v2/queues/queue/resume');
      await server.endpoint.arrival('/first', 2);
      await server.quiet();
      expect(await server.states(second)).toEqual(['CREATED']);
      release();
      await server.endpoint.arrival('/second');
    }),

    statement('I4', 'Resuming an active queue has no effect, whatever is running or waiting in it.', async (server) => {
      const release = server.endpoint.hold('/a');
      const running = await server.enqueue('queue', '/a');
      const waiting = await server.enqueue('queue', '/b');
      await server.endpoint.arrival('/a');
      const before = await server.get('/v2/queues/queue');
      expect((await server.ask('POST', '/v2/queues/queue/resume')).status).toBe(200);
      await server.quiet();
      expect(await server.get('/v2/queues/queue')).toEqual(before);
      expect([await server.states(running), await server.states(waiting)]).toEqual([
        ['CREATED', 'ACTIVE'],
        ['CREATED'],
      ]);
      release();
      await server.endpoint.arrival('/b');
    }),
  ],
};
