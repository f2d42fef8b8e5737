/** What a cancel does to an attempt under way (contract M 6.3.8, 29.161). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';

export const cancelInFlight: Section = {
  title: 'Cancel in flight',
  statements: [
    statement(
      'M161',
      'A cancel interrupts a running attempt, and the next message of its queue or flow-control key is sent.',
      async (server) => {
        server.endpoint.hold('/hangs');
        const perKey = { 'Upstash-Flow-Control-Key': 'key', 'Upstash-Flow-Control-Value': 'parallelism=1' };
        const inQueue = await server.enqueue('queue', '/hangs?queue');
        await server.enqueue('queue', '/next-in-queue');
        const ofKey = await server.publish('/hangs?key', perKey);
        await server.publish('/next-of-key', perKey);
        await server.endpoint.arrival('/hangs', 2);
        expect(await server.delete(`/v2/messages/${inQueue}`)).toEqual({ cancelled: 1 });
        expect(await server.delete(`/v2/messages?messageIds=${ofKey}`)).toEqual({ cancelled: 1 });
        await server.endpoint.arrival('/next-in-queue');
        await server.endpoint.arrival('/next-of-key');
        const states = ['CREATED', 'ACTIVE', 'CANCEL_REQUESTED', 'CANCELED'];
        for (const id of [inQueue, ofKey]) expect(await server.finished(id)).toEqual(states);
        expect((await server.get('/v2/dlq')).messages).toEqual([]);
      },
    ),
  ],
};
