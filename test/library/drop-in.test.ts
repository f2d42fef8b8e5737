/** Everything that apps of the official library depend on is unchanged when only the import changes. */
import { text } from 'node:stream/consumers';
import * as official from '@upstash/workflow';
import * as officialNext from '@upstash/workflow/nextjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import * as own from '../../packages/workflow/src/index.ts';
import * as ownNext from '../../packages/workflow/src/nextjs.ts';
import { eachWorld, type World } from './world.ts';

type Handler = (request: Request) => Promise<Response>;

const NO_STEP =
  'Failed to authenticate Workflow request. If this is unexpected, see the caveat https://upstash.com/docs/workflow/basics/caveats#avoid-non-deterministic-code-outside-context-run';

const LIBRARIES = {
  '@upstash/workflow': { ...officialNext, ...official } as unknown as typeof ownNext & typeof own,
  '@waypost/workflow': { ...ownNext, ...own },
};

let world: World;
eachWorld((fresh) => {
  world = fresh;
  // The official library writes about each failure.
  for (const level of ['error', 'warn', 'log'] as const) vi.spyOn(console, level).mockReturnValue();
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** The URL at which `handlers` are served by their paths; a path that ends in a slash stands for all below it. */
function listen(handlers: Record<string, Handler>): Promise<string> {
  return world.endpoints.listen(async (request, response) => {
    const { method = 'POST', url = '/', headers } = request;
    const path = Object.keys(handlers).find((each) => (each.endsWith('/') ? url.startsWith(each) : url === each));
    const body = await text(request);
    const init = { method, headers: headers as Record<string, string>, ...(method !== 'GET' && { body }) };
    const answer = await handlers[path ?? '']?.(new Request(`http://${headers.host}${url}`, init));
    response.writeHead(answer?.status ?? 404, Object.fromEntries(answer?.headers ?? []));
    response.end(await answer?.text());
  });
}

async function finished(workflowRunId: string): Promise<own.WorkflowRunLog | undefined> {
  await world.waypost.runUntilIdle();
  return (await world.client.logs({ workflowRunId })).runs[0];
}

describe.each(Object.entries(LIBRARIES))('with %s', (_, library) => {
  /** What a run at `path` ends with. */
  async function run(url: string, options: Partial<own.TriggerOptions> = {}): Promise<own.WorkflowRunLog | undefined> {
    const client = new library.Client({ baseUrl: world.waypost.url, token: world.waypost.token });
    const { workflowRunId } = await client.trigger({ url, retries: 0, ...options });
    return finished(workflowRunId);
  }

  it('an endpoint that checks who asks answers each forged request as its callers expect', async () => {
    let failures = 0;
    const settings = { receiver: undefined, env: world.waypost.env() };
    const { handler: target } = library.serve(
      async (context) => {
        if (context.headers.get('authorization') !== 'Bearer secret') return;
        await context.run('never', () => {});
      },
      {
        ...settings,
        failureFunction: () => {
          failures += 1;
        },
      },
    );
    const answers: unknown[] = [];
    const { handler: attacker } = library.serve(
      async (context) => {
        const url = `${context.url.slice(0, -'/attacker'.length)}/target`;
        for (const mark of ['Upstash-Workflow-Is-Failure', 'Upstash-Workflow-Callback', 'X-Nothing']) {
          const headers = { [mark]: 'true' };
          const { status, body } = await context.call(mark, { url, method: 'POST', body: '{"status":200}', headers });
          await context.run(`note ${mark}`, () => void answers.push([status, body]));
        }
      },
      { env: world.waypost.env() },
    );
    const origin = await listen({ '/target': target, '/attacker': attacker });
    expect(await run(`${origin}/attacker`)).toMatchObject({ workflowState: 'RUN_SUCCESS' });
    const error = {
      error: 'WorkflowError',
      message: 'Not authorized to run the failure function.',
      stack: expect.any(String),
    };
    const noStep = { message: NO_STEP, workflowRunId: 'no-workflow-id' };
    expect([answers, failures]).toEqual([
      [
        [500, error],
        [400, noStep],
        [400, noStep],
      ],
      0,
    ]);
  });

  it.each([
    ['returns', undefined, [400, NO_STEP]],
    ['throws', new Error('no database'), [500, 'no database']],
  ])('a workflow that %s before its first step has its failure function called', async (_how, error, expected) => {
    let calls = 0;
    const told: unknown[] = [];
    const { handler } = library.serve(
      async (context) => {
        calls += 1;
        if (calls > 1) await context.run('never', () => {});
        if (error) throw error;
      },
      {
        env: world.waypost.env(),
        failureFunction: ({ failStatus, failResponse }) => {
          told.push([failStatus, failResponse]);
        },
      },
    );
    const log = await run(`${await listen({ '/flow': handler })}/flow`);
    expect([log?.workflowState, told]).toEqual(['RUN_FAILED', [expected]]);
  });

  it('invoked workflows get their id, label, headers and depth, and their ends reach who invoked them', async () => {
    const depthOf = (context: unknown): unknown =>
      (context as { executor: { invokeCount: number } }).executor.invokeCount;
    const leaf = library.createWorkflow(async (context: own.WorkflowContext<number>) => {
      await context.sleep('rest', 1);
      return [context.requestPayload, depthOf(context)];
    });
    const branch = library.createWorkflow(async (context: own.WorkflowContext<string>) => {
      await context.run('begin', () => {});
      const leaves = [1, 2].map((body) => context.invoke(`leaf ${body}`, { workflow: leaf, body }));
      const ends = (await Promise.all(leaves)).map(({ body }) => body);
      const { workflowRunId, label, headers, requestPayload } = context;
      return [requestPayload, workflowRunId, label, headers.get('x-user'), depthOf(context), ends];
    });
    const failing = library.createWorkflow(async (_context: own.WorkflowContext<string>): Promise<string> => {
      throw new Error('not today');
    });
    const main = library.createWorkflow(async (context: own.WorkflowContext<undefined>) => {
      const settings = { body: 'hello', headers: { 'x-user': 'ann' }, workflowRunId: 'child', label: 'night' };
      const invoked = await context.invoke('branch', { workflow: branch, ...settings });
      const failed = await context.invoke('failing', { workflow: failing, body: '', retries: 0 });
      const called = await context.call('called', { workflow: leaf, body: 3, retries: 0 });
      return [depthOf(context), invoked, failed, called.status, typeof called.body.workflowRunId];
    });
    const { POST } = library.serveMany({ main, branch, leaf, failing }, { env: world.waypost.env() } as object);
    const origin = await listen({ '/': POST });
    const log = await run(`${origin}/main`);
    const leaves = [
      [1, 2],
      [2, 2],
    ];
    expect(JSON.parse(log?.workflowRunResponse ?? 'null')).toEqual([
      0,
      { body: ['hello', 'wfr_child', 'night', 'ann', 1, leaves], isCanceled: false, isFailed: false },
      { isCanceled: false, isFailed: true },
      200,
      'string',
    ]);
  });

  it.each<[string, (context: own.WorkflowContext, other: string) => Promise<unknown>, string[]]>([
    [
      'a step and a sleep',
      async (context) => {
        await context.run('step', () => 1);
        await context.sleep('sleep', 1);
      },
      [
        ...['runStarted', 'before step', 'Submitted step "step"', 'executed', 'identified', 'after step'],
        ...['before sleep', 'Submitted step "sleep"', 'executed', 'identified', 'after sleep'],
      ],
    ],
    [
      'a call',
      (context, url) => context.call('call', { url, method: 'GET' }),
      ['runStarted', 'before call', 'Submitted step "call"', 'executed', 'identified', 'after call'],
    ],
    [
      'a wait without an event',
      (context) => context.waitForEvent('wait', 'never', { timeout: 1 }),
      ['runStarted', 'before wait', 'executed', 'identified', 'after wait'],
    ],
    [
      'a step as the last one',
      (context) => context.run('step', () => 1),
      ['runStarted', 'before step', 'Submitted step "step"', 'executed', 'identified', 'after step'],
    ],
  ])('a middleware hears of %s in this order', async (_what, program, expected) => {
    const heard: string[] = [];
    const middleware = new library.WorkflowMiddleware({
      name: 'listener',
      callbacks: {
        runStarted: () => void heard.push('runStarted'),
        runCompleted: () => void heard.push('runCompleted'),
        beforeExecution: ({ stepName }) => void heard.push(`before ${stepName}`),
        afterExecution: ({ stepName }) => void heard.push(`after ${stepName}`),
        onError: ({ error }) => void heard.push(error.message),
        onInfo: ({ workflowRunId, info }) => {
          const isOfRun = workflowRunId === 'wfr_heard';
          const text = info
            .replace('Run id identified. isFirstInvocation: false, unknownSdk: false', 'identified')
            .replace('Workflow endpoint execution completed successfully.', 'executed')
            .replace(/ with messageId: msg_\w+\.$/, '');
          if (isOfRun) heard.push(text);
        },
      },
    });
    const other = await listen({ '/': async () => Response.json({ fine: true }) });
    const { handler } = library.serve((context) => program(context, `${other}/`), {
      env: world.waypost.env(),
      middlewares: [middleware],
    });
    await run(`${await listen({ '/flow': handler })}/flow`, { workflowRunId: 'heard' });
    expect(heard).toEqual([
      'identified',
      ...expected,
      'runCompleted',
      'Deleting workflow run wfr_heard from QStash.',
      'Workflow run wfr_heard deleted from QStash successfully.',
      'executed',
    ]);
  });
});
