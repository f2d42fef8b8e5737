/** A message of the DLQ, each field of its table (contract I 2.2, 4.2). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';

export const deadLetter: Section = {
  title: 'DLQ get',
  statements: [
    statement('I5', 'messageId, url, method and dlqId are strings.', async (server) => {
      const { dlqId, messageId } = await server.bury('/a', { 'Upstash-Method': 'PATCH' });
      const message = await server.get(`/v2/dlq/${dlqId}`);
      expect(message).toMatchObject({ dlqId, messageId, url: server.destination('/a'), method: 'PATCH' });
      for (const name of ['dlqId', 'messageId']) expect(message[name], name).toEqual(expect.any(String));
    }),

    statement('I6', 'maxRetries, notBefore, createdAt and responseStatus are numbers.', async (server) => {
      const nowMs = server.clock.nowMs();
      const { dlqId } = await server.bury('/a');
      const numbers = { maxRetries: 0, notBefore: nowMs, createdAt: nowMs, responseStatus: 500 };
      expect(await server.get(`/v2/dlq/${dlqId}`)).toMatchObject(numbers);
    }),

    statement('I7', 'header is an object.', async (server) => {
      const { dlqId } = await server.bury('/a', { 'Upstash-Forward-X-One': '1', 'Content-Type': 'text/plain' });
      const header = { 'X-One': ['1'], 'Content-Type': ['text/plain'] };
      expect((await server.get(`/v2/dlq/${dlqId}`)).header).toEqual(header);
    }),

    statement('I8', 'body is a text; other bytes are in bodyBase64.', async (server) => {
      const text = await server.bury('/a', {}, 'grün');
      expect(await server.get(`/v2/dlq/${text.dlqId}`)).toMatchObject({ body: 'grün' });
      const bytes = await server.bury('/b', {}, Buffer.of(0xff, 0xfe));
      const message = await server.get(`/v2/dlq/${bytes.dlqId}`);
      expect([message.body, message.bodyBase64]).toEqual([undefined, '//4=']);
    }),

    statement('I9', "topicName and endpointName are the group's and its endpoint's.", async (server) => {
      server.endpoint.replies('/a', { status: 500 });
      const endpoints = [{ url: server.destination('/a'), name: 'first' }];
      await server.post('/v2/topics/group/endpoints', { endpoints });
      const headers = { 'Upstash-Retries': '0' };
      const [{ messageId }] = await server.post('/v2/publish/group', undefined, { headers });
      const { dlqId } = await server.buried(messageId);
      expect(await server.get(`/v2/dlq/${dlqId}`)).toMatchObject({ topicName: 'group', endpointName: 'first' });
    }),

    statement('I10', 'callback and failureCallback are the URLs that were given.', async (server) => {
      const { dlqId } = await server.bury('/a', {
        'Upstash-Callback': server.destination('/callback'),
        'Upstash-Failure-Callback': server.destination('/failure'),
      });
      expect(await server.get(`/v2/dlq/${dlqId}`)).toMatchObject({
        callback: server.destination('/callback'),
        failureCallback: server.destination('/failure'),
      });
    }),

    statement('I11', 'scheduleId is that of the schedule.', async (server) => {
      server.endpoint.replies('/a', { status: 500 });
      const headers = { 'Upstash-Cron': '* * * * *', 'Upstash-Schedule-Id': 'mine', 'Upstash-Retries': '0' };
      await server.post(`/v2/schedules/${server.destination('/a')}`, undefined, { headers });
      server.clock.advance(60_000);
      const received = await server.endpoint.arrival('/a');
      const { dlqId } = await server.buried(String(received.headers['upstash-message-id']));
      expect((await server.get(`/v2/dlq/${dlqId}`)).scheduleId).toBe('mine');
    }),

    statement('I12', 'queueName is that of the queue.', async (server) => {
      server.endpoint.replies('/a', { status: 500 });
      const { dlqId } = await server.buried(await server.enqueue('queue', '/a', { 'Upstash-Retries': '0' }));
      expect((await server.get(`/v2/dlq/${dlqId}`)).queueName).toBe('queue');
    }),

    statement('I13', "callerIP is the publisher's address.", async (server) => {
      const { dlqId } = await server.bury('/a');
      expect((await server.get(`/v2/dlq/${dlqId}`)).callerIP).toBe('127.0.0.1');
    }),

    statement('I14', 'responseBody is a text; other bytes are in responseBodyBase64.', async (server) => {
      server.endpoint.replies('/text', { status: 500, body: 'grün' });
      server.endpoint.replies('/bytes', { status: 500, body: Buffer.of(0xff, 0xfe) });
      const [text, bytes] = await Promise.all(
        ['/text', '/bytes'].map(async (path) => {
          const { dlqId } = await server.buried(await server.publish(path, { 'Upstash-Retries': '0' }));
          return server.get(`/v2/dlq/${dlqId}`);
        }),
      );
      expect([text.responseBody, text.responseBodyBase64]).toEqual(['grün', undefined]);
      expect([bytes.responseBody, bytes.responseBodyBase64]).toEqual([undefined, '//4=']);
    }),

    statement(
      'I15',
      'responseHeader is an array of objects.',
      async (server) => {
        server.endpoint.replies('/a', { status: 500, headers: { 'X-Why': ['one', 'two'] } });
        const { dlqId } = await server.buried(await server.publish('/a', { 'Upstash-Retries': '0' }));
        const { responseHeader } = await server.get(`/v2/dlq/${dlqId}`);
        expect(responseHeader['X-Why']).toEqual(['one', 'two']);
      },
      {
        deviation:
          'It is one object from header names to arrays of values, as `header` is: all official clients and all ' +
          'samples of the hosted service have that form, and clients would break on the other (contract M 26.18a).',
      },
    ),

    statement('I16', 'A missing entry gets 404, and so does a malformed id.', async (server) => {
      for (const dlqId of ['1725323658779-0', 'nonsense', '%2F']) {
        expect((await server.ask('GET', `/v2/dlq/${dlqId}`)).status, dlqId).toBe(404);
      }
    }),
  ],
};
