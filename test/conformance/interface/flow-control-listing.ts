/** The list of flow-control keys (contract I 4.3). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Subject } from '../support/subject.ts';

function publish(server: Subject, to: string, key: string, headers: Record<string, string> = {}): Promise<string> {
  const flowControl = { 'Upstash-Flow-Control-Key': key, 'Upstash-Flow-Control-Value': 'parallelism=1' };
  return server.publish(to, { ...flowControl, ...headers });
}

export const flowControlListing: Section = {
  title: 'Flow-control listing',
  statements: [
    statement(
      'I17',
      'The keys are listed in an object, as flowControls, with and without a trailing slash.',
      async (server) => {
        expect(await server.get('/v2/flowControl/')).toEqual({ flowControls: [] });
        await publish(server, '/a', 'key', { 'Upstash-Delay': '1h' });
        const list = await server.get('/v2/flowControl/');
        expect(list.flowControls).toHaveLength(1);
        expect(list.flowControls[0].flowControlKey).toBe('key');
        expect(await server.get('/v2/flowControl')).toEqual(list);
      },
    ),

    statement('I18', 'waitListSize counts the messages that wait for the parallelism of their key.', async (server) => {
      const release = server.endpoint.hold('/a');
      for (let nth = 1; nth <= 3; nth += 1) await publish(server, '/a', 'busy');
      await publish(server, '/b', 'idle');
      await server.endpoint.arrival('/a');
      await server.endpoint.arrival('/b');
      const sizes = async (): Promise<Record<string, number>> => {
        const { flowControls } = await server.get('/v2/flowControl/');
        return Object.fromEntries(
          flowControls.map(({ flowControlKey, waitListSize }: Record<string, unknown>) => [
            flowControlKey,
            waitListSize,
          ]),
        );
      };
      expect(await sizes()).toEqual({ busy: 2, idle: 0 });
      release();
      await server.endpoint.arrival('/a', 2);
      expect(await sizes()).toEqual({ busy: 1, idle: 0 });
    }),
  ],
};
