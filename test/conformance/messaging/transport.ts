/** Requests, answers, and who may ask (contract M 29.1 to 29.11). */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { initialise } from '../../../src/admin/initialise.ts';
import { parseConfig } from '../../../src/config/parse.ts';
import { type Section, statement } from '../support/statement.ts';
import { OTHER_TOKEN, Subject } from '../support/subject.ts';

export const transport: Section = {
  title: 'Transport and authentication',
  statements: [
    statement('M1', 'A request without a token gets 401 with an error object.', async (server) => {
      const { status, json } = await server.ask('GET', '/v2/logs', { token: null });
      expect([status, Object.keys(json)]).toEqual([401, ['error']]);
    }),

    statement('M2', 'A wrong token gets 401 with the documented text.', async (server) => {
      const { status, json } = await server.ask('POST', '/v2/publish/https://example.com', { token: 'wrong' });
      expect([status, json.error]).toEqual([401, 'unable to authenticate: invalid token']);
    }),

    statement('M3', 'A token in the query is accepted for publishing and for reading.', async (server) => {
      const inQuery = `?qstash_token=${encodeURIComponent(server.token)}`;
      const published = await server.ask('POST', `/v2/publish/${server.destination('/a')}${inQuery}`, { token: null });
      expect(published.status).toBe(200);
      expect((await server.ask('GET', `/v2/logs${inQuery}`, { token: null })).status).toBe(200);
    }),

    statement('M4', 'A token in the query is neither sent to the destination nor shown.', async (server) => {
      const token = encodeURIComponent(server.token);
      const target = `/v2/publish/${server.destination('/a')}?b=c&qstash_token=${token}&d=e`;
      for (const question of [{ token: null }, {}]) {
        const { json } = await server.ask('POST', target, question);
        expect(json.url).toBe(server.destination('/a?b=c&d=e'));
        expect(JSON.stringify(await server.logs(json.messageId))).not.toContain('qstash_token');
      }
      expect((await server.endpoint.arrival('/a', 1)).target).toBe('/a?b=c&d=e');
      expect((await server.endpoint.arrival('/a', 2)).target).toBe('/a?b=c&d=e');
    }),

    statement('M5', 'A trailing slash on a list has no effect.', async (server) => {
      await server.post('/v2/queues', { queueName: 'one' });
      const list = await server.get('/v2/queues');
      expect(list).toHaveLength(1);
      expect(await server.get('/v2/queues/')).toEqual(list);
    }),

    statement('M6', 'The fixed segments of a path are case-insensitive.', async (server) => {
      const headers = { 'Upstash-Cron': '0 0 1 1 *' };
      const { scheduleId } = await server.post(`/v2/Schedules/${server.destination('/a')}`, undefined, { headers });
      expect((await server.get(`/v2/Schedules/${scheduleId}`)).scheduleId).toBe(scheduleId);
      expect((await server.get(`/v2/schedules/${scheduleId}`)).scheduleId).toBe(scheduleId);
    }),

    statement('M7', 'Every error response is JSON with an error text.', async (server) => {
      // What each answer must look like is checked by `ask`.
      const refused = [
        server.ask('GET', '/v2/nothing'),
        server.ask('GET', '/nothing'),
        server.ask('PUT', '/v2/logs'),
        server.ask('POST', '/v2/batch', { body: '{' }),
        server.ask('POST', '/v2/publish/nowhere', { headers: { 'Upstash-Retries': 'many' } }),
        server.ask('GET', '/v2/messages/%E0%A4%A'),
        server.ask('DELETE', '/v2/dlq/none'),
        server.ask('GET', '/v2/logs?count=x'),
      ];
      const statuses = (await Promise.all(refused)).map(({ status }) => status);
      expect(statuses).toEqual([404, 404, 405, 400, 400, 404, 404, 400]);
    }),

    statement('M8', 'No response is a redirect, and slashes in a destination stay unchanged.', async (server) => {
      // That it is none is checked by `ask`.
      for (const target of ['//v2/logs', '/v2//logs', '/v2/./logs', '/v2/logs/..//dlq'])
        await server.ask('GET', target);
      await server.publish(`${server.endpoint.origin}//b//./c/../d/`);
      expect((await server.endpoint.arrival('//b//./c/../d/')).target).toBe('//b//./c/../d/');
    }),

    statement(
      'M9',
      'A read-only token can read the logs; a publish with it gets 403 and creates nothing.',
      async () => {
        const dataDir = await mkdtemp(join(tmpdir(), 'waypost-conformance-'));
        const config = parseConfig({}, ['--data-dir', dataDir]);
        const { token } = await initialise(config, { project: 'mine', addToken: false, scope: 'full' });
        const reader = await initialise(config, { project: 'mine', addToken: true, scope: 'read-only' });
        const server = await Subject.open({ dataDir, credentials: 'own', token });
        try {
          const target = `/v2/publish/${server.destination('/a')}`;
          expect((await server.ask('POST', target, { token: reader.token })).status).toBe(403);
          expect(await server.get('/v2/logs', { token: reader.token })).toMatchObject({ logs: [] });
          expect(server.endpoint.to('/a')).toEqual([]);
        } finally {
          await server.close();
          await rm(dataDir, { recursive: true });
        }
      },
    ),

    statement('M10', 'An account cannot see the data of another one.', async (server) => {
      const flowControl = { 'Upstash-Flow-Control-Key': 'key', 'Upstash-Flow-Control-Value': 'parallelism=1' };
      const waiting = await server.publish('/waiting', { 'Upstash-Delay': '1h', ...flowControl });
      const { dlqId } = await server.bury('/dead');
      await server.post('/v2/queues', { queueName: 'queue' });
      await server.post('/v2/topics/group/endpoints', { endpoints: [{ url: server.destination('/a') }] });
      const headers = { 'Upstash-Cron': '0 0 1 1 *', 'Upstash-Schedule-Id': 'mine' };
      await server.post(`/v2/schedules/${server.destination('/a')}`, undefined, { headers });

      const other = { token: OTHER_TOKEN };
      const single = ['queues/queue', 'topics/group', 'schedules/mine', 'flowControl/key'];
      for (const target of [...single, `messages/${waiting}`, `dlq/${dlqId}`]) {
        expect((await server.ask('GET', `/v2/${target}`)).status, target).toBe(200);
        expect((await server.ask('GET', `/v2/${target}`, other)).status, target).toBe(404);
      }
      for (const list of ['queues', 'topics', 'schedules']) expect(await server.get(`/v2/${list}`, other)).toEqual([]);
      expect(await server.get('/v2/flowControl', other)).toEqual({ flowControls: [] });
      expect(await server.get('/v2/dlq', other)).toEqual({ messages: [] });
      expect(await server.get('/v2/events', other)).toEqual({ events: [] });
      expect(await server.get('/v2/keys', other)).not.toEqual(await server.get('/v2/keys'));
    }),

    statement('M11', 'Telemetry headers of the clients are accepted and not forwarded.', async (server) => {
      const names = ['Sdk', 'Platform', 'Runtime'].map((name) => `Upstash-Telemetry-${name}`);
      const headers = Object.fromEntries(names.map((name) => [name, 'telemetry-value']));
      const id = await server.publish('/a', { ...headers, 'Upstash-Header-Forward': 'true' });
      const received = await server.endpoint.arrival('/a');
      expect(JSON.stringify(received.headers)).not.toContain('telemetry');
      expect(JSON.stringify(await server.logs(id))).not.toContain('telemetry');
    }),
  ],
};
