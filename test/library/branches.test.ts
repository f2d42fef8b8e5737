/** The outcome of steps in several branches when a branch ends or throws, or the workflow returns (contract K 6.3). */
import type { RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Client, type WorkflowContext, type WorkflowServeOptions } from '../../packages/workflow/src/index.ts';
import { serve } from '../../packages/workflow/src/node.ts';
import type { Waypost } from '../../src/testing/types.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { Endpoints } from '../support/listen.ts';

type Step = { stepId: number; stepName: string };
type Program = (context: WorkflowContext) => Promise<unknown>;

let waypost: Waypost;
let client: Client;
let endpoints: Endpoints;
/** What happens, in order. */
let told: string[];
let waiting: (() => void)[];
/** Called before a checkpoint is passed on to the server. */
let onCheckpoint: (names: string[]) => Promise<void>;
/** Called before the server's answer to it is passed on. */
let onKept: (names: string[]) => Promise<void>;

beforeEach(async () => {
  endpoints = new Endpoints();
  [told, waiting, onCheckpoint, onKept] = [[], [], async () => {}, async () => {}];
  waypost = await startWaypost();
  client = new Client({ baseUrl: waypost.url, token: waypost.token });
});
afterEach(async () => {
  endpoints.close();
  await waypost.stop();
});

function tell(what: string): void {
  told.push(what);
  for (const look of waiting) look();
}

/** Resolves once all of it is told. */
function hearsOf(...what: string[]): Promise<void> {
  return new Promise((resolve) => {
    const look = () => what.every((each) => told.includes(each)) && resolve();
    waiting.push(look);
    look();
  });
}

/** The server as the endpoint sees it. */
const passOn: RequestListener = async (request, response) => {
  const { method = '', url, headers } = request;
  const body = await text(request);
  const { append = [], failed = [] } = JSON.parse(body || '{}') as { append?: { step?: Step }[]; failed?: unknown[] };
  const names = [
    ...append.map(({ step }) =>
      step ? `${step.stepName} is ${step.stepId === 0 ? 'planned' : 'kept'}` : 'something is asked for',
    ),
    ...failed.map(() => 'a failure is told'),
  ];
  await onCheckpoint(names);
  const init = { method, headers: { authorization: headers.authorization ?? '' }, ...(body !== '' && { body }) };
  const answer = await fetch(`${waypost.url}${url}`, init);
  names.forEach(tell);
  await onKept(names);
  response.writeHead(answer.status).end(await answer.text());
};

/** Answers how the run ended, and in how many calls. */
async function run(
  program: Program,
  retries = 0,
  options: WorkflowServeOptions = {},
): Promise<[state: unknown, result: unknown, calls: number]> {
  let calls = 0;
  const handle = serve(program, { env: { QSTASH_URL: await endpoints.listen(passOn) }, ...options });
  const url = await endpoints.listen((request, response) => {
    calls += 1;
    response.on('finish', () => tell(response.statusCode === 200 ? 'the call is answered' : 'a failure is told'));
    void handle(request, response);
  });
  const { workflowRunId } = await client.trigger({ url: `${url}/workflow`, retries, retryDelay: '1000' });
  await waypost.runUntilIdle();
  const { runs } = await client.logs({ workflowRunId });
  return [runs[0]?.workflowState, runs[0]?.workflowRunResponse, calls];
}

/** A step that tells of its beginning and, after `until`, its end. */
function step(context: WorkflowContext, name: string, until: string[] = []): Promise<string> {
  return context.run(name, async () => {
    tell(`${name} begins`);
    await hearsOf(...until);
    tell(`${name} ends`);
    return `${name}!`;
  });
}

/** So that whatever comes after it begins in a turn of its own. */
async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

/** So that whatever may happen at once has happened. */
async function aMoment(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
}

it('a step that ends while another one is being kept is kept after it', async () => {
  onCheckpoint = async (names) => {
    if (!names.includes('left 2 is kept')) return;
    tell('left 2 is being kept');
    await hearsOf('right 2 ends');
    await new Promise(setImmediate);
  };
  const left = async (context: WorkflowContext) => {
    await step(context, 'left 1');
    return step(context, 'left 2', ['right 2 begins']);
  };
  const right = async (context: WorkflowContext) => {
    await step(context, 'right 1');
    await someTurns();
    return step(context, 'right 2', ['left 2 is being kept']);
  };
  const ended = await run((context) => Promise.all([left(context), right(context)]));
  expect(ended).toEqual(['RUN_SUCCESS', '["left 2!","right 2!"]', 1]);
});

it('a call for one step of a group executes no step of another branch', async () => {
  let calls = 0;
  const [state, result] = await run((context) => {
    calls += 1;
    const isFirst = calls === 1;
    const fails = context.run('fails', async () => {
      if (context.retried === 0) throw new Error('once');
      await hearsOf('alone is asked for');
      for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
      if (told.includes('alone begins')) await hearsOf('alone is kept');
      return 'at last';
    });
    const alone = async () => {
      if (isFirst) await new Promise(() => {});
      await someTurns();
      const asked = step(context, 'alone');
      tell('alone is asked for');
      return asked;
    };
    return Promise.all([step(context, 'one'), fails, alone()]);
  }, 1);
  expect([state, result]).toEqual(['RUN_SUCCESS', '["one!","at last","alone!"]']);
});

/** Tells of its end once another step has failed, and whatever may come of that at once. */
async function long(context: WorkflowContext): Promise<string> {
  await someTurns();
  return context.run('long', async () => {
    tell('long begins');
    await hearsOf('it fails');
    await aMoment();
    tell('long ends');
    return 'long!';
  });
}

/** Fails for the first time, while the other one is under way. */
async function fails(): Promise<string> {
  await hearsOf('long begins');
  if (told.includes('it fails')) return 'at last';
  tell('it fails');
  throw new Error('once');
}

describe.each([
  ['stays', {}],
  ['does not stay', { lingerMs: 0 }],
])('in a call that %s', (_, options) => {
  it('a step that throws is told of once the step of another branch is kept', async () => {
    const failing = async (context: WorkflowContext) => {
      await step(context, 'before');
      await someTurns();
      return context.run('fails', fails);
    };
    const [state, result] = await run((context) => Promise.all([long(context), failing(context)]), 1, options);
    expect([state, result]).toEqual(['RUN_SUCCESS', '["long!","at last"]']);
    expect(told.slice(told.indexOf('it fails'))).toEqual([
      'it fails',
      'long ends',
      'long is kept',
      'a failure is told',
      'the call is answered',
    ]);
  });
});

it('a workflow that throws begins no step in another branch before that is told', async () => {
  const two = async (context: WorkflowContext) => [await long(context), await step(context, 'after')];
  const [state, result] = await run((context) => Promise.all([two(context), fails()]), 1);
  expect([state, result]).toEqual(['RUN_SUCCESS', '[["long!","after!"],"at last"]']);
  expect(told).toEqual([
    ...['long begins', 'it fails', 'long ends', 'long is kept', 'a failure is told'],
    ...['after begins', 'after ends', 'the call is answered'],
  ]);
});

it('a step is kept that ends while what another branch asks for is being refused', async () => {
  onKept = async (names) => {
    if (!names.includes('something is asked for')) return;
    tell('it fails');
    await hearsOf('long ends');
    await aMoment();
  };
  const asking = async (context: WorkflowContext) => {
    await hearsOf('long begins');
    return context.call('ask', { url: 'ftp://no.example' });
  };
  const [state] = await run((context) => Promise.all([long(context), asking(context)]));
  expect(state).toBe('RUN_FAILED');
  expect(told.slice(told.indexOf('long ends')).slice(0, 3)).toEqual(['long ends', 'long is kept', 'a failure is told']);
});

it('a step that throws while the call stays for another branch is executed again with what that brings', async () => {
  onCheckpoint = async (names) => {
    if (names.includes('nap is kept')) tell('long begins');
  };
  const napping = async (context: WorkflowContext) => {
    await someTurns();
    await context.sleep('nap', 1);
    return step(context, 'after');
  };
  const ended = await run((context) => Promise.all([context.run('fails', fails), napping(context)]), 1);
  expect(ended).toEqual(['RUN_SUCCESS', '["at last","after!"]', 1]);
});

it('a run is cancelled while a step of another branch is under way', async () => {
  const slow = async (context: WorkflowContext) => {
    await someTurns();
    return step(context, 'slow', ['the call is answered']);
  };
  const cancelling = async (context: WorkflowContext) => {
    await step(context, 'before', ['slow begins']);
    await context.cancel();
  };
  const [state] = await run((context) => Promise.all([slow(context), cancelling(context)]));
  expect(state).toBe('RUN_CANCELED');
});

it.each([
  ['the result of a step', 'second is kept', (context: WorkflowContext) => step(context, 'second')],
  [
    'the plan of a group',
    'second is planned',
    (context: WorkflowContext) => Promise.all([step(context, 'second'), step(context, 'third')]),
  ],
])('a workflow that returns while %s is being kept ends its run', async (_, what, begun) => {
  onKept = async (names) => {
    if (!names.includes(what)) return;
    await hearsOf('it returns');
    await aMoment();
  };
  const branch = async (context: WorkflowContext) => {
    await step(context, 'first');
    await someTurns();
    await begun(context);
    return new Promise(() => {});
  };
  const enough = async () => {
    await hearsOf(what);
    tell('it returns');
    return 'enough';
  };
  const slow = (context: WorkflowContext) => someTurns().then(() => step(context, 'slow', ['the call is answered']));
  const ended = await run((context) => Promise.race([branch(context), slow(context), enough()]));
  expect(ended).toEqual(['RUN_SUCCESS', '"enough"', 1]);
});

it('a step that ends after its workflow has returned is not kept', async () => {
  const slow = async (context: WorkflowContext) => {
    await someTurns();
    await step(context, 'slow', ['the call is answered']);
    return step(context, 'slower');
  };
  const quick = (context: WorkflowContext) => step(context, 'quick', ['slow begins']);
  const ended = await run((context) => Promise.race([slow(context), quick(context)]));
  expect(ended).toEqual(['RUN_SUCCESS', '"quick!"', 1]);
  await hearsOf('slow ends');
  await aMoment();
  expect(told.slice(-2)).toEqual(['the call is answered', 'slow ends']);
});
