/** Checks that docs/errors.md lists every error text of the server, with a remedy. */
import { join } from 'node:path';
import type { InjectOptions } from 'light-my-request';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openWorld, READ_ONLY_TOKEN, type World } from '../../api/support/world.ts';
import { errorsPage } from './page.ts';

const page = errorsPage();

it('docs/errors.md is made of the sources (--update writes it)', async () => {
  await expect(page).toMatchFileSnapshot(join(import.meta.dirname, '../../../docs/errors.md'));
});

describe('what the server answers is on the page, under its status', () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld();
  });
  afterAll(() => world.close());

  const json = (value: unknown) => JSON.stringify(value);
  const refused: readonly InjectOptions[] = [
    { method: 'GET', url: '/nowhere' },
    { method: 'PUT', url: '/v2/queues' },
    { method: 'GET', url: '/v2/queues', headers: { authorization: 'Bearer wrong' } },
    { method: 'POST', url: '/v2/queues', headers: { authorization: `Bearer ${READ_ONLY_TOKEN}` }, payload: '{}' },
    { method: 'POST', url: '/v2/publish/ftp://x' },
    { method: 'POST', url: '/v2/publish/http://127.0.0.1' },
    { method: 'POST', url: '/v2/publish/no-such-group' },
    { method: 'POST', url: '/v2/publish/https://x.example', headers: { 'upstash-retries': 'many' } },
    { method: 'POST', url: '/v2/publish/https://x.example', headers: { 'upstash-retries': '1000' } },
    { method: 'POST', url: '/v2/publish/https://x.example', headers: { 'upstash-retry-delay': 'pow(1' } },
    { method: 'POST', url: '/v2/publish/https://x.example', headers: { 'upstash-forward-a b': 'x' } },
    { method: 'POST', url: '/v2/publish/https://x.example', payload: 'x'.repeat(200_000) },
    { method: 'POST', url: '/v2/schedules/https://x.example', headers: { 'upstash-cron': '61 * * * *' } },
    { method: 'POST', url: '/v2/enqueue/a%20b/https://x.example' },
    {
      method: 'POST',
      url: '/v2/batch',
      payload: json([{ destination: 'https://x.example', headers: { 'Upstash-Delay': 'x' } }]),
    },
    { method: 'POST', url: '/v2/batch', payload: '{' },
    { method: 'POST', url: '/v2/topics/group/endpoints', payload: json({ endpoints: [{}] }) },
    { method: 'DELETE', url: '/v2/messages?nothing=1' },
    { method: 'GET', url: '/v2/logs?count=0' },
    { method: 'GET', url: '/v2/messages/msg_1' },
    { method: 'GET', url: '/v2/workflows/dlq/x' },
    { method: 'POST', url: '/v2/flowControl/crm/pin' },
  ];

  it.each(refused)('$method $url', async (request) => {
    const { status, json: { error } = {} } = await world.ask(request);
    const sections = page.split(/^### /m).filter((section) => section.startsWith(`${status}: `));
    const texts = sections.flatMap((section) => [...section.matchAll(/^- `(.*)`$/gm)]);
    const patterns = texts.map(([, text = '']) => patternOf(text));
    expect(
      patterns.some((pattern) => pattern.test(error)),
      `${status} ${error}`,
    ).toBe(true);
  });
});

function patternOf(text: string): RegExp {
  const fixed = text.split(/<\w+>/).map((piece) => piece.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(`^${fixed.join('.*')}( \\(.*\\))?$`);
}
