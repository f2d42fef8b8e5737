/** The same app has the same results and the same journal with either library. */
import { buffer } from 'node:stream/consumers';
import * as official from '@upstash/workflow';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import * as own from '../../packages/workflow/src/index.ts';
import type { Waypost } from '../../src/testing/types.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { Endpoints } from '../support/listen.ts';

type Context = own.WorkflowContext<{ number: number }>;
type Program = (context: Context, other: string) => Promise<unknown>;
type Handler = (request: Request) => Promise<Response>;
type Options = own.WorkflowServeOptions<{ number: number }>;

const PROGRAMS: Record<string, { program: Program; result: unknown; calls: number }> = {
  'three steps': {
    program: async (context) => {
      const one = await context.run('one', () => context.requestPayload.number);
      const two = await context.run('two', async () => ({ value: one + 1, gone: undefined }));
      return await context.run('three', () => two.value + 1);
    },
    result: 9,
    calls: 1,
  },
  'a group': {
    program: async (context) => {
      const before = await context.run('before', () => 'ü');
      const all = await Promise.all([1, 2, 3].map((step) => context.run(`step ${step}`, async () => step * 2)));
      return context.run('after', () => [before, ...all]);
    },
    result: ['ü', 2, 4, 6],
    calls: 1,
  },
  'two groups in two branches': {
    program: async (context) => {
      const branch = async (name: string) => {
        const first = await context.run(`${name} 1`, () => name);
        return context.run(`${name} 2`, () => `${first}!`);
      };
      return Promise.all([branch('left'), branch('right')]);
    },
    result: ['left!', 'right!'],
    calls: 1,
  },
  'a sleep, alone and in a group': {
    program: async (context) => {
      await context.sleep('a day', '1d');
      const [value] = await Promise.all([context.run('beside', () => 4), context.sleep('two hours', '2h')]);
      return value;
    },
    result: 4,
    calls: 3,
  },
  'a call': {
    program: async (context, other) => {
      const { status, body } = await context.call<{ word: string }>('frägt', { url: other, method: 'POST', body: 'é' });
      return { status, word: body.word };
    },
    result: { status: 201, word: 'é' },
    calls: 1,
  },
  'two short sleeps': {
    program: async (context) => {
      await context.sleep('first', 1);
      const value = await context.run('between', () => 1);
      await context.sleep('second', '1s');
      return value;
    },
    result: 1,
    calls: 1,
  },
  'a group of a short sleep, a step that fails once and another': {
    program: async (context) => {
      const isRepeated = context.retried > 0;
      const fails = () => {
        if (!isRepeated) throw new Error('once');
        return 2;
      };
      const all = [context.sleep('nap', 1), context.run('fails', fails), context.run('works', () => 3)];
      return (await Promise.all<unknown>(all)).slice(1);
    },
    result: [2, 3],
    // The sleep and the retry are over at the same time.
    calls: 2,
  },
  'a wait that nobody ends, beside a step': {
    program: async (context) => {
      const [event, value] = await Promise.all([
        context.waitForEvent('wait', 'never', { timeout: '3d' }),
        context.run('beside', () => 'done'),
      ]);
      return { timeout: event.timeout, value };
    },
    result: { timeout: true, value: 'done' },
    calls: 2,
  },
  'a webhook that the run calls itself': {
    program: async (context) => {
      const hook = await context.createWebhook('make');
      await context.run('call', async () => void (await fetch(hook.webhookUrl, { method: 'PUT', body: '{"a":1}' })));
      const { request } = await context.waitForWebhook('wait', hook, '1d');
      return { method: request?.method, body: await request?.json() };
    },
    result: { method: 'PUT', body: { a: 1 } },
    calls: 2,
  },
  'a step that fails once': {
    program: async (context) => {
      let isRepeated = false;
      const before = await context.run('before', () => 1);
      isRepeated = context.retried > 0;
      return context.run('fails', () => {
        if (!isRepeated) throw new Error('once');
        return before + 1;
      });
    },
    result: 2,
    calls: 1,
  },
};

let waypost: Waypost;
const endpoints = new Endpoints();
beforeEach(async () => {
  waypost = await startWaypost();
});
afterEach(async () => {
  endpoints.close();
  await waypost.stop();
});

async function listen(handler: Handler): Promise<{ url: string; count: () => number }> {
  let count = 0;
  const origin = await endpoints.listen(async (from, to) => {
    count += 1;
    const body = new Uint8Array(await buffer(from));
    const headers = from.headers as Record<string, string>;
    const method = from.method ?? 'POST';
    const answer = await handler(new Request(`http://${from.headers.host}${from.url}`, { method, headers, body }));
    to.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  });
  return { url: `${origin}/workflow`, count: () => count };
}

/** What a run of the program comes to, in how many calls, and what its log says of its steps. */
async function runWith(serve: typeof own.serve, program: Program, options: Options = {}) {
  const other = await listen(async (request) => Response.json({ word: await request.text() }, { status: 201 }));
  const { handler } = serve((context: Context) => program(context, other.url), { env: waypost.env(), ...options });
  const app = await listen(handler);
  const client = new own.Client({ baseUrl: waypost.url, token: waypost.token });
  const { workflowRunId } = await client.trigger({ url: app.url, body: { number: 7 }, retries: 1, retryDelay: '1000' });
  await waypost.runUntilIdle();
  const { runs } = await client.logs({ workflowRunId });
  const [run] = runs;
  const steps = run?.steps.map(({ type, steps: of }) => [
    type,
    of
      .map((step) => ('stepType' in step ? [step.stepName, step.stepType, step.concurrent, outOf(step)] : [step.state]))
      .toSorted(),
  ]);
  return { state: run?.workflowState, result: run?.workflowRunResponse, calls: app.count(), steps };
}

/** Without what is another in each run. */
function outOf({ stepType, out }: own.StepLog): unknown {
  if (stepType === 'CreateWebhook' || stepType === 'WaitForWebhook' || stepType === 'Call') return typeof out;
  return out;
}

describe.each(Object.entries(PROGRAMS))('%s', (_, { program, result, calls }) => {
  it('comes to its result', async () => {
    const run = await runWith(own.serve, program);
    expect(run).toMatchObject({ state: 'RUN_SUCCESS', result: JSON.stringify(result), calls });
  });

  it('leaves the journal that the official library leaves', async () => {
    const { calls: fewer, ...ours } = await runWith(own.serve, program);
    const { calls: more, ...theirs } = await runWith(official.serve as unknown as typeof own.serve, program);
    expect(ours).toEqual(theirs);
    expect(fewer).toBeLessThanOrEqual(more);
  });
});

describe.each(['two short sleeps', 'a call', 'a step that fails once'])('%s, where no call stays', (name) => {
  it('comes to the same in more calls', async () => {
    const { program, result, calls } = PROGRAMS[name] as (typeof PROGRAMS)[string];
    const run = await runWith(own.serve, program, { lingerMs: 0 });
    expect(run).toMatchObject({ state: 'RUN_SUCCESS', result: JSON.stringify(result) });
    expect(run.calls).toBeGreaterThan(calls);
  });
});

describe.each<[string, Options]>([
  ['a schema', { schema: z.object({ number: z.number() }) }],
  ['a parser of its own', { initialPayloadParser: (text) => ({ number: z.number().parse(JSON.parse(text).number) }) }],
])('with %s for its payload, a call', (_, options) => {
  it.each([
    ['of this library', own.serve],
    ['of the official one', official.serve as unknown as typeof own.serve],
  ])('%s comes to its result', async (_library, serve) => {
    const { program, result } = PROGRAMS['a call'] as (typeof PROGRAMS)[string];
    // So that the answer is delivered.
    const run = await runWith(serve, program, { ...options, lingerMs: 0 });
    expect(run).toMatchObject({ state: 'RUN_SUCCESS', result: JSON.stringify(result) });
  });
});

it.each([-1, 0.5, 10_001, '1s'])('takes no linger of %s', (lingerMs) => {
  expect(() => own.serve(async () => {}, { lingerMs: lingerMs as number })).toThrow(/lingerMs must be an integer/);
});

it('fails alone the one request of a group that the server refuses', async () => {
  const program: Program = async (context, other) => {
    const calls = ['one', 'two', 'three'].map((name) =>
      context.call(name, { url: name === 'two' ? 'ftp://no.example' : other, method: 'POST', body: name }),
    );
    return Promise.all(calls);
  };
  const ours = await runWith(own.serve, program);
  expect(ours.state).toBe('RUN_FAILED');
  const { calls: _, ...theirs } = await runWith(official.serve as unknown as typeof own.serve, program);
  expect(ours).toMatchObject(theirs);
});

it.each([
  ['this library', own.serve],
  ['the official one', official.serve as unknown as typeof own.serve],
])('fails at once with %s when the result of a step is larger than a message may be', async (_, serve) => {
  await waypost.stop();
  waypost = await startWaypost({ settings: { WAYPOST_MESSAGE_BYTES_MAX: '2000' } });
  for (const others of [[], ['beside']]) {
    let executions = 0;
    const program: Program = async (context) => {
      const large = () => {
        executions += 1;
        return 'x'.repeat(3_000);
      };
      await Promise.all([context.run('large', large), ...others.map((name) => context.run(name, () => name))]);
      return context.run('after', () => 1);
    };
    const { state } = await runWith(serve, program);
    expect([state, executions]).toEqual(['RUN_FAILED', 1]);
  }
});

it.each(['{"status":200}', 'no JSON'])(
  'answers a request that pretends to be the result of a call with 400: %s',
  async (body) => {
    const { handler } = own.serve(async (context) => context.run('one', () => 1), {
      env: waypost.env(),
      receiver: undefined,
    });
    const pretending = { method: 'POST', headers: { 'Upstash-Workflow-Callback': 'true' }, body };
    expect((await handler(new Request('http://app.test/', pretending))).status).toBe(400);
  },
);
