/** No response shows what the redaction of a run hides (contract W 16.3). */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openRunWorld, type RunWorld } from './support/run-world.ts';
import { READ_ONLY_TOKEN, TOKEN } from './support/world.ts';

let world: RunWorld;
beforeEach(async () => {
  world = await openRunWorld();
});
afterEach(() => world.close());

async function shown(path: string): Promise<string> {
  const reply = await world.get(path);
  expect(reply.status, reply.text).toBe(200);
  return reply.text;
}

const hashesIn = (text: string) => text.match(/REDACTED:\w+/g)?.toSorted();

describe('the journal of a run that hides its bodies', () => {
  it('is for its endpoint, and not for a token that only reads', async () => {
    await world.trigger('wfr_a', { headers: { 'upstash-redact-fields': 'body' }, payload: 'secret' });
    await world.trigger('wfr_b', { headers: { 'upstash-redact-fields': 'header' } });
    const read = (runId: string, token: string) =>
      world.ask({ method: 'GET', url: `/v2/workflows/runs/${runId}`, headers: { authorization: `Bearer ${token}` } });
    expect((await read('wfr_a', READ_ONLY_TOKEN)).status).toBe(403);
    expect((await read('wfr_b', READ_ONLY_TOKEN)).status).toBe(200);
    expect((await read('wfr_c', READ_ONLY_TOKEN)).status).toBe(404);
    const [entry] = (await read('wfr_a', TOKEN)).json;
    expect(Buffer.from(entry.body, 'base64').toString()).toBe('secret');
  });
});

describe('a header that is hidden', () => {
  it('is hidden in responses too, wherever these are shown', async () => {
    const header = { 'X-Secret': 'hush', 'X-Open': 'open' };
    world.respondWith(() => ({ status: 500, header }));
    await world.trigger('wfr_a', { headers: { 'upstash-redact-fields': 'header[X-Secret]' } });
    const dlqId = await world.dlqIdOf('wfr_a');
    const lists = ['workflows/logs', 'workflows/messageLogs', 'workflows/dlq', 'dlq?source=workflow'];
    for (const path of [...lists, `workflows/dlq/${dlqId}`]) {
      const text = await shown(path);
      expect(text, path).toContain('open');
      expect(text, path).not.toContain('hush');
    }
  });
});

describe('a call that hides more than its run', () => {
  it.each([{}, { 'upstash-redact-fields': 'header[X-Other]' }])('keeps it hidden in a run with %j', async (headers) => {
    world.respondWith(({ callType }) =>
      callType === 'toCallback' ? { status: 500, body: 'secret response' } : { status: 200, body: 'open' },
    );
    await world.trigger('wfr_a', { headers });
    await world.call('wfr_a', 1, 'https://third.example/', { 'upstash-redact-fields': 'body' });
    await world.settled();
    for (const path of ['workflows/logs', 'workflows/messageLogs']) {
      expect(await shown(path), path).not.toMatch(/question|secret/);
    }
  });
});

describe('the hash of what is hidden', () => {
  it('is that of all of it, however little is asked for: of shorter ones the rest could be guessed', async () => {
    const headers = { 'upstash-redact-fields': 'body' };
    await world.fail('wfr_a', { headers });
    world.respondWith(() => ({ status: 200, body: 'responded' }));
    await world.trigger('wfr_b', { headers });
    await world.append('wfr_b', [
      { step: { stepId: 1, stepName: 's', stepType: 'Run', concurrent: 1, out: 'result' } },
    ]);
    await world.call('wfr_b', 2, 'https://third.example/');
    await world.delete('workflows/runs/wfr_b?cancel=false', {}, '"returned"');
    const whole = hashesIn(await shown('workflows/logs'));
    expect(whole?.length).toBeGreaterThan(5);
    for (const bytes of [1, 3]) expect(hashesIn(await shown(`workflows/logs?trimBody=${bytes}`))).toEqual(whole);
  });
});
