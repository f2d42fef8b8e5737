/** The output of a development server on a terminal, for a first-time user. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEVELOPMENT_TOKEN } from '../../bench/waypost-process.ts';
import { eventually } from '../support/eventually.ts';
import type { InProcessServer } from '../support/in-process-server.ts';
import { Servers } from '../support/servers.ts';
import { giveCommand } from '../support/waypost-command.ts';

/** Nothing listens on the discard port. */
const NOBODY = 'http://127.0.0.1:9';

describe('the terminal of a development server', () => {
  let servers: Servers;
  let server: InProcessServer;

  beforeEach(async () => {
    servers = new Servers();
    server = await servers.startInProcess(['dev', '--memory']);
  });
  afterEach(() => servers.close());

  const ask = (method: string, path: string, headers: Record<string, string> = {}) =>
    fetch(`${server.url}${path}`, { method, headers: { authorization: `Bearer ${DEVELOPMENT_TOKEN}`, ...headers } });

  const line = (event: string) =>
    eventually(
      () => `a line ${event} after ${JSON.stringify(server.events)}`,
      () => server.events.find((each) => each['event'] === event),
    );

  it('says at once why the first message does not arrive', async () => {
    const { messageId } = (await (await ask('POST', `/v2/publish/${NOBODY}/hello`)).json()) as { messageId: string };
    expect(await line('attempt_failed')).toMatchObject({
      level: 'warn',
      messageId,
      url: `${NOBODY}/hello`,
      reason: 'connection refused',
      next: 'attempt 2 in 12 s',
    });
  });

  it('says which message has gone into the dead letter queue', async () => {
    await ask('POST', `/v2/publish/${NOBODY}/hello`, { 'upstash-retries': '0' });
    expect(await line('message_buried')).toMatchObject({ url: `${NOBODY}/hello`, reason: 'connection refused' });
  });

  it('tells of the end of each workflow run, whatever it is', async () => {
    const trigger = (runId: string, retries: string, delay: string) =>
      ask('POST', `/v2/trigger/${NOBODY}/wf`, {
        'upstash-workflow-runid': runId,
        'upstash-retries': retries,
        'upstash-delay': delay,
      });
    await trigger('wfr_failing', '0', '0s');
    expect(await line('run_failed')).toMatchObject({ runId: 'wfr_failing', url: `${NOBODY}/wf`, attempts: 1 });
    await trigger('wfr_cancelled', '0', '1h');
    await ask('DELETE', '/v2/workflows/runs/wfr_cancelled');
    expect(await line('run_canceled')).toMatchObject({ runId: 'wfr_cancelled', url: `${NOBODY}/wf` });
    await trigger('wfr_returning', '0', '1h');
    await ask('DELETE', '/v2/workflows/runs/wfr_returning?cancel=false');
    expect(await line('run_succeeded')).toMatchObject({ runId: 'wfr_returning', url: `${NOBODY}/wf` });
  });
});

it('lets a production server tell the origin of a dead message, and nothing else of its URL', async () => {
  const servers = new Servers();
  try {
    const { stdout } = await giveCommand(['init', '--data-dir', servers.dataDir]);
    const token = /^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '';
    const server = await servers.startInProcess(['serve', '--allow-destinations', 'loopback']);
    const headers = { authorization: `Bearer ${token}`, 'upstash-retries': '1', 'upstash-retry-delay': '0' };
    await fetch(`${server.url}/v2/publish/${NOBODY}/hooks/secret?key=secret`, { method: 'POST', headers });
    const events = await eventually('the end of the message', () => {
      const told = server.events.filter(({ event }) => event === 'attempt_failed' || event === 'message_buried');
      return told.length === 2 && told;
    });
    expect(events).toMatchObject([
      { level: 'debug', event: 'attempt_failed', origin: NOBODY },
      { level: 'warn', event: 'message_buried', origin: NOBODY, attempts: 2 },
    ]);
    expect(JSON.stringify(server.events)).not.toContain('secret');
  } finally {
    await servers.close();
  }
});
