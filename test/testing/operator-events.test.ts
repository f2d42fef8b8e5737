/** Operator events reach the operator of a server, with signatures that the official client accepts. */
import { readFileSync } from 'node:fs';
import { Client, Receiver } from '@upstash/qstash';
import { Client as WorkflowClient } from '@upstash/workflow';
import { expect, it, onTestFinished } from 'vitest';
import { OPERATOR_EVENTS } from '../../src/engine/operator-events/kinds.ts';
import type { Waypost } from '../../src/testing/types.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { TestApp } from './app.ts';

let waypost: Waypost;
let app: TestApp;

async function open(settings: Record<string, string> = {}): Promise<void> {
  app = await TestApp.open(({ path }) => (path === '/operator' ? 200 : 500));
  waypost = await startWaypost({ settings: { WAYPOST_OPERATOR_EVENTS_URL: `${app.url}/operator`, ...settings } });
  onTestFinished(async () => {
    await waypost.stop();
    await app.close();
  });
}

const received = () => app.calls.filter(({ path }) => path === '/operator');

it('reports a dead message and a failed run once, signed, also across a restart', async () => {
  await open({ WAYPOST_OPERATOR_EVENTS_PROJECT: 'test-1' }); // whose keys are known here
  await new Client({ baseUrl: waypost.url, token: waypost.token }).publish({ url: `${app.url}/fails`, retries: 0 });
  await new WorkflowClient({ baseUrl: waypost.url, token: waypost.token }).trigger({
    url: `${app.url}/run`,
    retries: 0,
  });
  await waypost.advance(100);
  await waypost.restart();
  await waypost.advance('1h');
  const dead = await waypost.dlq();
  expect(
    received()
      .map(({ body }) => JSON.parse(body))
      .toSorted((a, b) => (a.kind < b.kind ? -1 : 1)),
  ).toMatchObject([
    { kind: 'message_buried', project: 'test-1', count: 1, example: dead.find((entry) => !entry.workflowRunId)?.dlqId },
    { kind: 'run_failed', project: 'test-1', count: 1, example: dead.find((entry) => entry.workflowRunId)?.dlqId },
  ]);
  const { current: currentSigningKey, next: nextSigningKey } = waypost.signingKeys;
  const receiver = new Receiver({ currentSigningKey, nextSigningKey });
  for (const { headers, body } of received()) {
    const signature = String(headers['upstash-signature']);
    expect(await receiver.verify({ signature, body, url: `${app.url}/operator` })).toBe(true);
    await expect(receiver.verify({ signature, body: `${body} `, url: `${app.url}/operator` })).rejects.toThrow();
  }
});

it('reports in a separate project, in which no other project takes part', async () => {
  await open({ WAYPOST_OPERATOR_EVENTS: 'message_buried:2,run_failed' });
  const client = new Client({ baseUrl: waypost.url, token: waypost.token });
  await client.publish({ url: `${app.url}/fails`, retries: 0 });
  await waypost.advance('2s');
  expect(received()).toEqual([]);
  await client.publish({ url: `${app.url}/fails`, retries: 0 });
  await waypost.advance('2s');
  expect(received().map(({ body }) => JSON.parse(body))).toMatchObject([{ kind: 'message_buried', count: 2 }]);
  expect((await waypost.messages()).map(({ url }) => url)).toEqual([`${app.url}/fails`, `${app.url}/fails`]);
});

it('the page names every kind', () => {
  const page = readFileSync(new URL('../../docs/operator-events.md', import.meta.url), 'utf8');
  const kinds = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, kind]) => kind);
  expect(kinds.toSorted()).toEqual(OPERATOR_EVENTS.toSorted());
});

it.each([
  [{ WAYPOST_OPERATOR_EVENTS: 'message_buried,naps' }, 'WAYPOST_OPERATOR_EVENTS: "naps" is none of message_buried,'],
  [{ WAYPOST_OPERATOR_EVENTS: 'run_failed:0' }, 'WAYPOST_OPERATOR_EVENTS: "run_failed:0" is none of'],
  [{ WAYPOST_OPERATOR_EVENTS_PROJECT: 'a b' }, 'WAYPOST_OPERATOR_EVENTS_PROJECT'],
  [{ WAYPOST_OPERATOR_EVENTS_URL: 'http://169.254.169.254/' }, 'WAYPOST_OPERATOR_EVENTS_URL'],
])('does not start with %j', async (settings, problem) => {
  const url = 'http://127.0.0.1:1/';
  await expect(startWaypost({ settings: { WAYPOST_OPERATOR_EVENTS_URL: url, ...settings } })).rejects.toThrow(problem);
});
