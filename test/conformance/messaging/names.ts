/** Names that clients write into paths (contract M 3.4, 29.154). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';

export const names: Section = {
  title: 'Names in paths',
  statements: [
    statement(
      'M154',
      'No queue, schedule, URL group or flow-control key can be named . or .., which paths cannot contain.',
      async (server) => {
        for (const name of ['.', '..']) {
          const queue = await server.ask('POST', '/v2/queues', { body: JSON.stringify({ queueName: name }) });
          expect([queue.status, queue.json.error]).toEqual([
            400,
            expect.stringContaining(`invalid queue name ${name}`),
          ]);
          const target = server.destination('/a');
          const named = [
            { 'Upstash-Cron': '@daily', 'Upstash-Schedule-Id': name },
            { 'Upstash-Flow-Control-Key': name, 'Upstash-Flow-Control-Value': 'parallelism=1' },
          ];
          for (const headers of named) {
            expect((await server.ask('POST', `/v2/publish/${target}`, { headers })).status).toBe(400);
          }
          const endpoints = JSON.stringify({ endpoints: [{ url: target }] });
          expect((await server.ask('POST', `/v2/topics/${name}/endpoints`, { body: endpoints })).status).toBe(400);
        }
      },
    ),
  ],
};
