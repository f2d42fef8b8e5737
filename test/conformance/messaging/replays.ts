/** Replays of messages (contract M 22.41, 29.162 to 29.165). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { ApiResponse, Json, Subject } from '../support/subject.ts';

const CHANGE: Json = {
  queue: 'repairs',
  headers: { 'Upstash-Method': 'PUT', 'Upstash-Retries': '1', 'Upstash-Delay': '1m', 'Upstash-Forward-A': '2' },
  body: 'repaired',
};

function ask(server: Subject, id: string, changes?: Json): Promise<ApiResponse> {
  const body = changes === undefined ? {} : { body: JSON.stringify(changes) };
  return server.ask('POST', `/v2/waypost/messages/${id}/replay`, body);
}

async function replay(server: Subject, id: string, changes?: Json): Promise<string> {
  const { status, json } = await ask(server, id, changes);
  expect(status, JSON.stringify(json)).toBe(201);
  return json.messageId;
}

export const replays: Section = {
  title: 'Replays',
  statements: [
    statement(
      'M162',
      'A delivered, dead, cancelled or waiting message can be replayed: the new message is sent as the original was published, names it, and is named by its explanation.',
      async (server) => {
        server.endpoint.replies('/dies', { status: 500 }, { status: 200 });
        const delivered = await server.publish('/delivered', { 'Upstash-Forward-A': '1' }, 'body');
        const dead = await server.publish('/dies', { 'Upstash-Retries': '0' });
        const cancelled = await server.publish('/cancelled', { 'Upstash-Delay': '1h' });
        await server.delete(`/v2/messages/${cancelled}`);
        const waiting = await server.publish('/waits', { 'Upstash-Delay': '1h' });
        for (const id of [delivered, dead, cancelled]) await server.finished(id);
        for (const original of [delivered, dead, cancelled, waiting]) {
          const id = await replay(server, original);
          expect((await server.finished(id)).at(-1)).toBe('DELIVERED');
          expect((await server.get(`/v2/messages/${id}`)).replayOf).toBe(original);
          expect((await server.logs(id))[0].replayOf).toBe(original);
          expect((await server.get(`/v2/messages/${original}/explain`)).replays).toEqual([id]);
        }
        const [first, second] = server.endpoint.to('/delivered');
        expect([second?.method, second?.body, second?.headers['a']]).toEqual(['POST', first?.body, '1']);
        expect((await server.get(`/v2/messages/${waiting}/explain`)).reason).toBe('delayed');
      },
    ),

    statement(
      'M163',
      'A replay may change destination, method, headers, body, delay, queue and retries; the original stays as it was.',
      async (server) => {
        const id = await server.publish('/original', { 'Upstash-Forward-A': '1', 'Upstash-Forward-B': '1' }, 'broken');
        await server.finished(id);
        const before = await server.logs(id);
        const replayed = await replay(server, id, { ...CHANGE, destination: server.destination('/repaired') });
        const message = await server.get(`/v2/messages/${replayed}`);
        expect(message).toMatchObject({ queueName: 'repairs', maxRetries: 1, method: 'PUT', body: 'repaired' });
        expect(message.notBefore - message.createdAt).toBe(60_000);
        server.clock.advance(60_000);
        const { method, headers, body } = await server.endpoint.arrival('/repaired');
        expect([method, headers['a'], headers['b'], body.toString()]).toEqual(['PUT', '2', '1', 'repaired']);
        expect(await server.logs(id)).toEqual(before);
      },
    ),

    statement(
      'M164',
      'A replay of a message with a deduplication id is not a duplicate, and does not use up the id.',
      async (server) => {
        const once = { 'Upstash-Deduplication-Id': 'once' };
        const id = await server.publish('/once', once);
        await replay(server, id);
        await server.endpoint.arrival('/once', 2);
        expect(await server.publish('/once', once)).toBe(id);
      },
    ),

    statement(
      'M165',
      'A replay of a redacted message needs each redacted part again, and the 400 names them.',
      async (server) => {
        const redacted = { 'Upstash-Redact-Fields': 'body,header[Secret]', 'Upstash-Forward-Secret': 's' };
        const id = await server.publish('/secret', redacted, 'secret');
        const { status, json } = await ask(server, id, { destination: server.destination('/elsewhere') });
        expect([status, json.error]).toEqual([
          400,
          expect.stringMatching(/body, Upstash-Forward-Secret must be given/),
        ]);
        await replay(server, id, { body: 'again', headers: { 'Upstash-Forward-Secret': 'known' } });
        const { headers, body } = await server.endpoint.arrival('/secret', 2);
        expect([headers['secret'], body.toString()]).toEqual(['known', 'again']);
      },
    ),
  ],
};
