/** Run ids with characters that are special in URLs: a request of a call always concerns its own run. */
import { describe, expect, it } from 'vitest';
import { Client, type WorkflowContext } from '../../packages/workflow/src/index.ts';
import { serve } from '../../packages/workflow/src/node.ts';
import type { Waypost } from '../../src/testing/types.ts';
import type { Endpoints } from '../support/listen.ts';
import { eachWorld } from './world.ts';

let waypost: Waypost;
let endpoints: Endpoints;
eachWorld((world) => {
  ({ waypost, endpoints } = world);
});

describe.each(['a..b', 'a,b', '50% c', 'é'])('the run %s', (id) => {
  /** Serves `program`, triggers it, and waits for its end; answers the state of the run and its result. */
  async function run(program: (context: WorkflowContext) => Promise<unknown>): Promise<unknown[]> {
    const handle = serve(program, { env: { QSTASH_URL: waypost.url, QSTASH_TOKEN: waypost.token } });
    const url = await endpoints.listen((request, response) => void handle(request, response));
    const client = new Client({ baseUrl: waypost.url, token: waypost.token });
    const { workflowRunId } = await client.trigger({ url, workflowRunId: id, retries: 0 });
    await waypost.runUntilIdle();
    const { runs } = await client.logs({ workflowRunId });
    return [runs[0]?.workflowState, runs[0]?.workflowRunResponse];
  }

  it('is cancelled', async () => {
    const ended = await run(async (context) => {
      await context.run('one', () => 1);
      await context.cancel();
    });
    expect(ended).toEqual(['RUN_CANCELED', undefined]);
  });

  it('fetches a journal that was not sent', async () => {
    const ended = await run(async (context) => {
      const large = await context.run('large', () => 'x'.repeat(4 * 1024 * 1024));
      await context.sleep('long', '1h');
      return large.length;
    });
    expect(ended).toEqual(['RUN_SUCCESS', '4194304']);
  });

  it('is notified', async () => {
    const ended = await run(async (context) => {
      await context.notify('notify', 'event', 'data', context.workflowRunId);
      return (await context.waitForEvent('wait', 'event')).eventData;
    });
    expect(ended).toEqual(['RUN_SUCCESS', '"data"']);
  });

  it('is called by its webhook', async () => {
    const ended = await run(async (context) => {
      const webhook = await context.createWebhook('make');
      await context.run(
        'call',
        async () => (await fetch(webhook.webhookUrl, { method: 'POST', body: 'hello' })).status,
      );
      return (await context.waitForWebhook('wait', webhook, '1d')).request?.text();
    });
    expect(ended).toEqual(['RUN_SUCCESS', '"hello"']);
  });
});
