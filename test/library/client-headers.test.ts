/** Default headers of a client: every message of a run has them, as with the official library. */
import { text } from 'node:stream/consumers';
import { Client as QstashClient } from '@upstash/qstash';
import { expect, it } from 'vitest';
import { Client, type WorkflowContext } from '../../packages/workflow/src/index.ts';
import { createWorkflow, serve, serveMany } from '../../packages/workflow/src/node.ts';
import type { Waypost } from '../../src/testing/types.ts';
import type { Endpoints } from '../support/listen.ts';
import { eachWorld } from './world.ts';

const HEADERS = { 'Upstash-Forward-X-Bypass': 'secret', 'X-Plain': 'yes' };

let waypost: Waypost;
let endpoints: Endpoints;
eachWorld((world) => {
  ({ waypost, endpoints } = world);
});

/** Serves by `handlerOf` what is told the URL; and what was delivered, as path and headers. */
async function listen(
  handlerOf: (url: string) => ReturnType<typeof serve>,
): Promise<{ url: string; delivered: string[] }> {
  const delivered: string[] = [];
  let handle: ReturnType<typeof serve> | undefined;
  const url = await endpoints.listen(async (request, response) => {
    const { 'x-bypass': bypass, 'x-plain': plain } = request.headers;
    delivered.push(`${request.url} ${bypass} ${plain}`);
    if (request.url === '/other') response.end(await text(request));
    else void handle?.(request, response);
  });
  handle = handlerOf(url);
  return { url, delivered };
}

const qstashClient = () => new QstashClient({ baseUrl: waypost.url, token: waypost.token, headers: HEADERS });
const client = () => new Client({ baseUrl: waypost.url, token: waypost.token, headers: HEADERS });
const env = () => ({ QSTASH_URL: waypost.url, QSTASH_TOKEN: waypost.token });

async function twoSteps(context: WorkflowContext): Promise<void> {
  await context.run('one', () => 1);
  await context.sleep('long', '1h');
}

it('are with each delivery of a run that the client begins', async () => {
  const { url, delivered } = await listen(() => serve(twoSteps, { env: env() }));
  await client().trigger({ url: `${url}/workflow` });
  await waypost.runUntilIdle();
  expect(delivered).toEqual(['/workflow secret yes', '/workflow secret yes']);
});

it('give way to those of one run', async () => {
  const { url, delivered } = await listen(() => serve(twoSteps, { env: env() }));
  await client().trigger({ url: `${url}/workflow`, headers: { 'x-bypass': 'mine' } });
  await waypost.runUntilIdle();
  expect(delivered).toEqual(['/workflow mine yes', '/workflow mine yes']);
});

it.each([
  ['as an official client', () => ({ qstashClient: qstashClient() })],
  ['as settings', () => ({ qstashClient: { headers: HEADERS } })],
])('are with each delivery of a run that an endpoint begins, given %s', async (_, options) => {
  const { url, delivered } = await listen(() => serve(twoSteps, { env: env(), ...options() }));
  await fetch(`${waypost.url}/v2/publish/${url}/workflow`, {
    method: 'POST',
    headers: { authorization: `Bearer ${waypost.token}` },
  });
  await waypost.runUntilIdle();
  expect(delivered).toEqual(['/workflow undefined undefined', '/workflow secret yes', '/workflow secret yes']);
});

it('are with the request of a call, and with what an invocation begins', async () => {
  const child = createWorkflow((context) => context.run('one', () => 1));
  const { url, delivered } = await listen((url) => {
    const parent = createWorkflow(async (context) => {
      await context.call('ask', { url: `${url}/other` });
      await context.invoke('child', { workflow: child, body: undefined });
    });
    return serveMany({ parent, child }, { qstashClient: qstashClient(), lingerMs: 0 });
  });
  await new Client({ baseUrl: waypost.url, token: waypost.token }).trigger({ url: `${url}/parent` });
  await waypost.runUntilIdle();
  expect(delivered).toContain('/other secret yes');
  expect(delivered).toContain('/child secret yes');
});
