/** How the last step of a run is saved together with the end of the run (contract K 5.7, 6.10). */
import type { RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Client, type WorkflowContext } from '../../packages/workflow/src/index.ts';
import { serve } from '../../packages/workflow/src/node.ts';
import type { Waypost } from '../../src/testing/types.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { Endpoints } from '../support/listen.ts';

type Program = (context: WorkflowContext) => Promise<unknown>;

let waypost: Waypost;
let client: Client;
let endpoints: Endpoints;
/** What happens, in order. */
let told: string[];
/** Called when a checkpoint has been kept. */
let onKept: () => void;

beforeEach(async () => {
  endpoints = new Endpoints();
  [told, onKept] = [[], () => {}];
  waypost = await startWaypost();
  client = new Client({ baseUrl: waypost.url, token: waypost.token });
});
afterEach(async () => {
  endpoints.close();
  await waypost.stop();
});

/** The server as the endpoint sees it: each checkpoint is told of once it is kept. */
const passOn: RequestListener = async (request, response) => {
  const { method = '', url, headers } = request;
  const body = await text(request);
  const init = { method, headers: { authorization: headers.authorization ?? '' }, ...(body !== '' && { body }) };
  const answer = await fetch(`${waypost.url}${url}`, init);
  response.writeHead(answer.status).end(await answer.text());
  const { append = [] } = JSON.parse(body || '{}') as { append?: { step: { stepName: string } }[] };
  told.push(...append.map(({ step }) => `${step.stepName} is kept`));
  onKept();
};

/** Runs `program`; answers how it ended. `spoil`: what befalls each call of it. */
async function run(program: Program, spoil: RequestListener = () => {}): Promise<unknown[]> {
  const handle = serve(program, { env: { QSTASH_URL: await endpoints.listen(passOn) } });
  const url = await endpoints.listen((request, response) => {
    spoil(request, response);
    void handle(request, response);
  });
  const { workflowRunId } = await client.trigger({ url: `${url}/workflow`, retryDelay: '1000' });
  await waypost.runUntilIdle();
  const { runs } = await client.logs({ workflowRunId });
  return [runs[0]?.workflowState, runs[0]?.workflowRunResponse];
}

/** A step that tells of itself. */
function step(context: WorkflowContext, name: string): Promise<string> {
  return context.run(name, () => {
    told.push(name);
    return `${name}!`;
  });
}

it('needs no checkpoint', async () => {
  const end = await run(async (context) => {
    await step(context, 'one');
    const { at } = await context.run('two', () => ({ at: new Date(0), umlaut: 'ü' }));
    return { at, isText: typeof at === 'string' };
  });
  expect(end).toEqual(['RUN_SUCCESS', '{"at":"1970-01-01T00:00:00.000Z","isText":true}']);
  expect(told).toEqual(['one', 'one is kept']);
});

it('is kept before another step begins, or before a failure is told', async () => {
  let failures = 0;
  const end = await run(async (context) => {
    await step(context, 'one');
    await step(context, 'two');
    if (failures++ === 0) throw new Error('broken');
    return 'done';
  });
  expect(end).toEqual(['RUN_SUCCESS', '"done"']);
  expect(told).toEqual(['one', 'one is kept', 'two', 'two is kept']);
});

it('is kept soon when the workflow does something else', async () => {
  const end = await run(async (context) => {
    await step(context, 'one');
    await new Promise<void>((resolve) => {
      onKept = resolve;
    });
    return 'done';
  });
  expect(end).toEqual(['RUN_SUCCESS', '"done"']);
  expect(told).toEqual(['one', 'one is kept']);
});

it('is kept before the workflow cancels its run', async () => {
  const end = await run(async (context) => {
    await step(context, 'one');
    await context.cancel();
  });
  expect(end[0]).toBe('RUN_CANCELED');
  expect(told.slice(0, 2)).toEqual(['one', 'one is kept']);
});

it('is executed again when the answer is lost', async () => {
  let calls = 0;
  const end = await run(
    async (context) => {
      await step(context, 'one');
      return step(context, 'two');
    },
    (_, response) => {
      calls += 1;
      if (calls === 1) response.writeHead = () => response.destroy();
    },
  );
  expect(end).toEqual(['RUN_SUCCESS', '"two!"']);
  expect(told).toEqual(['one', 'one is kept', 'two', 'two']);
});

it('is kept by a checkpoint when it is large, or when the server takes none with the end', async () => {
  await run(async (context) => {
    await context.run('large', () => 'ä'.repeat(10_000));
  });
  await run(
    async (context) => {
      await step(context, 'one');
    },
    ({ headers }) => {
      delete headers['upstash-workflow-end-step'];
    },
  );
  expect(told).toEqual(['large is kept', 'one', 'one is kept']);
});
