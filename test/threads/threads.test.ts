/** Several workers in one process act as one server, to clients and to endpoints. More: threads.full.test.ts. */
import { rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { Servers } from '../support/servers.ts';
import { giveCommand } from '../support/waypost-command.ts';
import type { WaypostProcess } from '../support/waypost-process.ts';
import { parseExposition, sampleOf } from '../telemetry/metrics/exposition.ts';
import { call, times } from './calls.ts';
import { seeAll } from './streams.ts';

let servers: Servers;
beforeEach(() => {
  servers = new Servers();
});
afterEach(() => servers.close());

/** The workers that own what is in flight, as the database says it. */
function owners({ dataDir }: Servers): string[] {
  const db = new DatabaseSync(join(dataDir, 'waypost.db'), { readOnly: true, timeout: 5_000 });
  try {
    const rows = db.prepare('select distinct worker from messages where claim_token is not null').all();
    return rows.map((row) => String(row['worker']));
  } finally {
    db.close();
  }
}

describe('a server with two workers', () => {
  let shared: Servers;
  let server: WaypostProcess;
  let token: string;
  let url: string;
  beforeAll(async () => {
    shared = new Servers();
    const { stdout } = await giveCommand(['init', '--data-dir', shared.dataDir]);
    token = /^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '';
    const flags = ['--workers', '2', '--metrics-address', '0', '--allow-destinations', 'loopback'];
    server = shared.start(['serve', ...flags]);
    url = await server.url();
  });
  afterAll(() => shared.close());

  const publish = (path: string, headers?: Record<string, string>) => call('POST', `${url}/v2/${path}`, headers, token);

  it('delivers what comes over many connections, each message once, from every worker', async () => {
    const held: ServerResponse[] = [];
    const seen: string[] = [];
    const endpoint = await servers.openEndpoint((incoming, response) => {
      seen.push(String(incoming.headers['upstash-message-id']));
      held.push(response);
    });
    const replies = await Promise.all(times(90, () => publish(`publish/${endpoint}`)));
    const ids = replies.map(({ text }) => (JSON.parse(text) as { messageId: string }).messageId);
    await eventually('all attempts', () => seen.length === ids.length);
    // Chance gives a worker none of 90 connections less than once in 10^15 times.
    expect(owners(shared)).toHaveLength(2);
    for (const response of held) response.end();
    await eventually('the end of all', () => owners(shared).length === 0);
    expect(seen.toSorted()).toEqual(ids.toSorted());
    expect(server.events().find(({ event }) => event === 'listening')).toMatchObject({ workers: 2 });
  });

  it('keeps the order of a queue and the parallelism of a key across its workers', async () => {
    const order: string[] = [];
    let atOnce = 0;
    let answered = 0;
    let most = 0;
    const endpoint = await servers.openEndpoint((incoming, response) => {
      const isOfKey = incoming.url === '/key';
      if (isOfKey) {
        atOnce += 1;
        most = Math.max(most, atOnce);
      } else {
        order.push(String(incoming.url));
      }
      setTimeout(() => {
        if (isOfKey) {
          atOnce -= 1;
          answered += 1;
        }
        response.end();
      }, 3);
    });
    const key = { 'upstash-flow-control-key': 'shared', 'upstash-flow-control-value': 'parallelism=2' };
    const ofKey = times(40, () => publish(`publish/${endpoint}/key`, key));
    for (let index = 0; index < 30; index += 1) await publish(`enqueue/orders/${endpoint}/${index}`);
    await Promise.all(ofKey);
    await eventually('all of it', () => order.length === 30 && answered === 40);
    expect(order).toEqual(times(30, (index) => `/${index}`));
    expect(most).toBe(2);
  });

  it('goes on in one call whichever of them its checkpoints reach', async () => {
    const counts = new Map<string, number>();
    const threeSteps = async (first: string): Promise<string> => {
      let held = first;
      for (let stepId = 1; stepId <= 3; stepId += 1) {
        const step = { stepId, stepName: `step ${stepId}`, stepType: 'Run', out: '1', concurrent: 1 };
        const body = JSON.stringify({ done: [held], append: [{ step }] });
        const { text } = await call('POST', `${url}/v2/waypost/checkpoints`, {}, held, body);
        held = (JSON.parse(text) as { entries: { token: string }[] }).entries[0]?.token ?? '';
      }
      return held;
    };
    const endpoint = await servers.openEndpoint(({ headers }, response) => {
      const runId = String(headers['upstash-workflow-runid']);
      counts.set(runId, (counts.get(runId) ?? 0) + 1);
      void threeSteps(String(headers['upstash-workflow-checkpoint'])).then((held) => {
        response.setHeader('Upstash-Workflow-End', held).end('"done"');
      });
    });
    const replies = await Promise.all(times(10, () => publish(`trigger/${endpoint}`, { 'Upstash-Label': 'any' })));
    const ids = replies.map(({ text }) => (JSON.parse(text) as { workflowRunId: string }).workflowRunId);
    const ended = async (): Promise<string[]> => {
      const logs = await call('GET', `${url}/v2/workflows/logs`, {}, token);
      const { runs } = JSON.parse(logs.text) as { runs: { workflowRunId: string; workflowState: string }[] };
      return runs.filter(({ workflowState }) => workflowState === 'RUN_SUCCESS').map((run) => run.workflowRunId);
    };
    await eventually('the end of all runs', async () => (await ended()).length === ids.length);
    // Chance brings all 30 checkpoints to the worker that makes their call once in 10^9 times.
    expect([...counts].toSorted()).toEqual(ids.map((id) => [id, 1]).toSorted());
  });

  it('shows what all of them write in the live stream of each, every entry once', async () => {
    const endpoint = await servers.openEndpoint((_request, response) => response.end());
    const { seen, expected } = await seeAll(url, endpoint, token);
    for (const stream of seen) expect(stream).toEqual(expected);
  });

  it('lets every worker serve what one of them was given for later', async () => {
    const held: ServerResponse[] = [];
    const endpoint = await servers.openEndpoint((_request, response) => held.push(response));
    const items = times(200, () => ({ destination: endpoint, headers: { 'Upstash-Delay': '1s' } }));
    const answer = await fetch(`${url}/v2/batch`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(items),
    });
    expect(answer.status).toBe(200);
    await eventually('all attempts', () => held.length === items.length);
    expect(owners(shared)).toHaveLength(2);
    for (const response of held) response.end();
    await eventually('the end of all', () => owners(shared).length === 0);
  });

  it('adds up what its workers count, and tells of the store once', async () => {
    const metrics = String(server.events().find(({ event }) => event === 'listening')?.['metrics']);
    const read = async () => parseExposition(await (await fetch(metrics)).text());
    // A worker counts an attempt down a moment after its end was saved.
    const before = await eventually('no attempt under way', async () => {
      const families = await read();
      return sampleOf(families, 'waypost_in_flight') === 0 && families;
    });
    const held: ServerResponse[] = [];
    const endpoint = await servers.openEndpoint((_request, response) => held.push(response));
    await Promise.all(times(60, () => publish(`publish/${endpoint}`)));
    await eventually('all attempts', () => held.length === 60);
    expect(owners(shared)).toHaveLength(2);
    const during = await read();
    const more = (sample: string) => (sampleOf(during, sample) ?? 0) - (sampleOf(before, sample) ?? 0);
    expect(more('waypost_messages_accepted_total')).toBe(60);
    expect(more('waypost_publish_duration_seconds_count')).toBe(60);
    expect(sampleOf(during, 'waypost_in_flight')).toBe(60);
    expect(sampleOf(during, 'waypost_workers')).toBe(2);
    expect(sampleOf(during, 'waypost_store_bytes')).toBeGreaterThan(0);
    for (const response of held) response.end();
    await eventually('the end of all', () => owners(shared).length === 0);
  });

  const operate = (...args: string[]) => giveCommand([...args, '--data-dir', shared.dataDir]);
  const statuses = async (as: string): Promise<number[]> => {
    const replies = await Promise.all(times(40, () => call('GET', `${url}/v2/keys`, {}, as)));
    return [...new Set(replies.map(({ status }) => status))];
  };

  it('lets tokens of the command line in and out at once in all workers', async () => {
    const made = await operate('tokens', 'create', '--project', 'default', '--scope', 'full', '--json');
    const { token: added, id } = JSON.parse(made.stdout) as { token: string; id: string };
    expect(await statuses(added)).toEqual([200]);
    expect((await operate('tokens', 'revoke', id)).code).toBe(0);
    expect(await statuses(added)).toEqual([401]);
  });

  it('lets a token that is made over HTTP into all workers before that is answered, and out of all when it is revoked', async () => {
    const made = await call('POST', `${url}/v2/waypost/tokens`, {}, token, '{"scope":"full"}');
    const { token: added, tokenId } = JSON.parse(made.text) as { token: string; tokenId: string };
    expect(await statuses(added)).toEqual([200]);
    expect((await call('DELETE', `${url}/v2/waypost/tokens/${tokenId}`, {}, token)).status).toBe(200);
    expect(await statuses(added)).toEqual([401]);
    expect(JSON.parse((await operate('tokens', '--json')).stdout)).toHaveLength(1);
  });

  it('signs with the rotated keys in all workers', async () => {
    const rotated = await call('POST', `${url}/v2/keys/rotate`, {}, token);
    expect(rotated.status).toBe(200);
    const keys = await Promise.all(times(40, () => call('GET', `${url}/v2/keys`, {}, token)));
    expect(new Set(keys.map(({ text }) => text))).toEqual(new Set([rotated.text]));
  });

  it('waits for the attempts of all workers when it is told to end, and takes nothing more', async () => {
    const held: ServerResponse[] = [];
    const endpoint = await servers.openEndpoint((_request, response) => held.push(response));
    await Promise.all(times(30, () => publish(`publish/${endpoint}`)));
    await eventually('all attempts', () => held.length === 30);
    expect(owners(shared)).toHaveLength(2);
    server.signal('SIGTERM');
    await eventually('each to say no', async () => {
      const ready = await Promise.all(times(20, () => call('GET', `${url}/readyz`)));
      return ready.every(({ status }) => status === 503);
    });
    for (const response of held) response.end();
    expect(await server.waitForExit()).toMatchObject({ code: 0, stderr: '' });
    const events = server.events().flatMap(({ level, event }) => (level === 'info' ? [String(event)] : []));
    expect(events.filter((event) => !/^(operator|token)_/.test(event))).toEqual(['listening', 'draining', 'stopped']);
    expect(owners(shared)).toEqual([]);
  });
});

it('answers 500 and goes on when a worker cannot read its metrics', async () => {
  const trigger = join(servers.dataDir, 'unreadable');
  const preload = pathToFileURL(join(import.meta.dirname, 'unreadable-memory.ts')).href;
  const env = { NODE_OPTIONS: `--import=${preload}`, MEMORY_UNREADABLE_WHILE: trigger };
  const server = servers.start(['dev', '--workers', '2', '--metrics-address', '0'], env);
  await server.url();
  const metrics = String(server.events().find(({ event }) => event === 'listening')?.['metrics']);
  writeFileSync(trigger, '');
  expect((await fetch(metrics)).status).toBe(500);
  rmSync(trigger);
  expect((await fetch(metrics)).status).toBe(200);
  const failures = server.events().filter(({ event }) => event === 'metrics_failed');
  expect(failures).toMatchObject([{ level: 'error', error: expect.stringContaining('EMFILE') }]);
});
