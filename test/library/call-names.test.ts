/** The name of a `context.call` step, which a header of its result repeats. */
import { describe, expect, it } from 'vitest';
import { stepOfCallResult } from '../../packages/workflow/src/call-result.ts';
import { Client } from '../../packages/workflow/src/index.ts';
import { serve } from '../../packages/workflow/src/node.ts';
import type { Waypost } from '../../src/testing/types.ts';
import type { Endpoints } from '../support/listen.ts';
import { eachWorld } from './world.ts';

const NAMES = ['plain', 'envoyé', '送信', 'Ã©', ' leading', 'trailing ', ' ', 'a\tb', '100%', '50%25'];

let waypost: Waypost;
let endpoints: Endpoints;
eachWorld((world) => {
  ({ waypost, endpoints } = world);
});

describe.each([
  ['in a call of its own', 0],
  ['in the call that stays for it', 1_000],
])('comes back %s', (_, lingerMs) => {
  it.each(NAMES)('%j', async (name) => {
    const handle = serve(async (context) => (await context.call(name, { url: `${url}/other` })).status, {
      env: { QSTASH_URL: waypost.url },
      lingerMs,
    });
    const url = await endpoints.listen((request, response) => {
      if (request.url === '/other') response.end();
      else void handle(request, response);
    });
    const client = new Client({ baseUrl: waypost.url, token: waypost.token });
    const { workflowRunId } = await client.trigger({ url: `${url}/workflow` });
    await waypost.advance('1m');
    const { runs } = await client.logs({ workflowRunId });
    expect([runs[0]?.workflowState, runs[0]?.workflowRunResponse]).toEqual(['RUN_SUCCESS', '200']);
  });
});

it('is read of the header of other libraries where it comes in that alone', () => {
  const headers: Record<string, string> = {
    'Upstash-Workflow-StepId': '1',
    'Upstash-Workflow-StepName': Buffer.from('送信').toString('latin1'),
    'Upstash-Workflow-Concurrent': '1',
  };
  const step = stepOfCallResult((name) => headers[name] ?? '', JSON.stringify({ status: 200, header: {} }));
  expect(step?.stepName).toBe('送信');
});
