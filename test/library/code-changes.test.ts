/** The code of a workflow changes while a run is in progress: how this is reported, and how the run continues (contract K 7). */
import { createServer, type Server } from 'node:http';
import { buffer } from 'node:stream/consumers';
import * as official from '@upstash/workflow';
import { afterEach, beforeEach, expect, test } from 'vitest';
import * as own from '../../packages/workflow/src/index.ts';
import type { Waypost } from '../../src/testing/types.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { listen, originOf } from '../support/listen.ts';

type Context = own.WorkflowContext<{ number: number }>;
type Program = (context: Context) => Promise<unknown>;

let waypost: Waypost;
let server: Server;
/** What the app has deployed. */
let deployed: { program: Program; serve: typeof own.serve };

beforeEach(async () => {
  waypost = await startWaypost();
  server = createServer(async (from, to) => {
    const { program, serve } = deployed;
    const { handler } = serve((context: Context) => program(context), { env: waypost.env() });
    const body = new Uint8Array(await buffer(from));
    const headers = from.headers as Record<string, string>;
    const answer = await handler(
      new Request(`http://${from.headers.host}${from.url}`, { method: 'POST', headers, body }),
    );
    to.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  });
  await listen(server);
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await waypost.stop();
});

const clientOf = () => new own.Client({ baseUrl: waypost.url, token: waypost.token });

/** A run without retries that is in the midst of a pause of an hour. */
async function runInPause(program: Program, serve = own.serve): Promise<string> {
  deployed = { program, serve };
  const url = `${originOf(server)}/workflow`;
  const { workflowRunId } = await clientOf().trigger({ url, body: { number: 7 }, retries: 0 });
  await waypost.advance('1m');
  return workflowRunId;
}

async function ask<Answer>(method: string, path: string): Promise<Answer> {
  const headers = { authorization: `Bearer ${waypost.token}` };
  const answer = await fetch(`${waypost.url}${path}`, { method, headers });
  return (await answer.json()) as Answer;
}

const explained = (id: string) =>
  ask<{ reason: string; explanation: string }>('GET', `/v2/workflows/runs/${id}/explain`);

/** How the run ended, and in which states its messages have been. */
async function endOf(id: string) {
  await waypost.runUntilIdle();
  const [run] = (await clientOf().logs({ workflowRunId: id })).runs;
  const { events } = await ask<{ events: { state: string }[] }>('GET', `/v2/workflows/messageLogs?workflowRunId=${id}`);
  const states = new Set(events.map(({ state }) => state));
  return { state: run?.workflowState, result: run?.workflowRunResponse, hasFailed: states.has('ERROR') };
}

const steps =
  (...names: string[]): Program =>
  async (context) => {
    const results: number[] = [];
    for (const [index, name] of names.entries()) {
      if (name === 'pause') await context.sleep('pause', '1h');
      else if (name.includes('+')) results.push(...(await all(context, name.split('+'))));
      else results.push(await context.run(name, () => index));
    }
    return results.length;
  };

function all(context: Context, names: string[]): Promise<number[]> {
  return Promise.all(names.map((name, index) => context.run(name, () => index)));
}

const returning: Program = async () => 'nothing';

/** One that does not let itself be disturbed. */
const catching: Program = async (context) => {
  try {
    return await context.run('other', () => 1);
  } catch {
    return await context.run('one', () => 1);
  }
};

test.for<[title: string, before: Program, after: Program, sentence: string]>([
  [
    'another name',
    steps('one', 'two', 'pause'),
    steps('one', 'other', 'pause'),
    "This run has step 2 'two' (Run), and the code has 'other' (Run) there now.",
  ],
  [
    'another type',
    steps('one', 'pause'),
    async (context) => [await context.run('one', () => 1), await context.run('pause', () => 2)],
    "This run has step 2 'pause' (SleepFor), and the code has 'pause' (Run) there now.",
  ],
  [
    'another order',
    steps('one', 'two', 'pause'),
    steps('two', 'one', 'pause'),
    "This run has step 1 'one' (Run), and the code has 'two' (Run) there now.",
  ],
  [
    'a step before',
    steps('one', 'pause'),
    steps('new', 'one', 'pause'),
    "This run has step 1 'one' (Run), and the code has 'new' (Run) there now.",
  ],
  [
    'a step that is gone from the end',
    steps('one', 'two', 'pause'),
    steps('one'),
    "This run has step 2 'two' (Run), and the code returns after step 1 now.",
  ],
  [
    'all steps gone',
    steps('one', 'pause'),
    returning,
    "This run has step 1 'one' (Run), and the code returns before its first step now.",
  ],
  [
    'a step that joined another',
    steps('one', 'two', 'pause'),
    steps('one+two', 'pause'),
    "This run has step 1 'one' (Run) alone, and the code has it as one of 2 at once now.",
  ],
  [
    'a step that left a group',
    steps('one+two+three', 'pause'),
    steps('one+two', 'three', 'pause'),
    "This run has step 1 'one' (Run) as one of 3 at once, and the code has it as one of 2 at once now.",
  ],
  [
    'a group that is one after the other',
    steps('one+two', 'pause'),
    steps('one', 'two', 'pause'),
    "This run has step 1 'one' (Run) as one of 2 at once, and the code has it alone now.",
  ],
  [
    'another order in a group',
    steps('one+two', 'pause'),
    steps('two+one', 'pause'),
    "This run has step 1 'one' (Run), and the code has 'two' (Run) there now.",
  ],
  [
    'a name, in code that catches everything',
    steps('one', 'pause'),
    catching,
    "This run has step 1 'one' (Run), and the code has 'other' (Run) there now.",
  ],
])('%s parks the run, and the code before lets it go on', async ([, before, after, sentence]) => {
  const id = await runInPause(before);
  deployed.program = after;
  await waypost.advance('3h');
  expect(await explained(id)).toMatchObject({ reason: 'parked', explanation: expect.stringContaining(sentence) });
  deployed.program = before;
  await waypost.advance('1h');
  expect(await endOf(id)).toMatchObject({ state: 'RUN_SUCCESS', hasFailed: false });
});

test('what changes behind the step that the run has come to does not matter', async () => {
  const id = await runInPause(steps('one', 'pause', 'two'));
  deployed.program = steps('one', 'pause', 'other', 'new+newer');
  expect(await endOf(id)).toEqual({ state: 'RUN_SUCCESS', result: '4', hasFailed: false });
});

test('a run that was begun with the official library is parked too, and goes on with it', async () => {
  const before = steps('one', 'one+two', 'pause', 'three');
  const id = await runInPause(before, official.serve as unknown as typeof own.serve);
  deployed = { program: steps('one', 'two', 'pause'), serve: own.serve };
  await waypost.advance('2h');
  const sentence = "This run has step 2 'one' (Run), and the code has 'two' (Run) there now.";
  expect((await explained(id)).explanation).toContain(sentence);
  deployed = { program: before, serve: official.serve as unknown as typeof own.serve };
  expect(await ask('POST', `/v2/waypost/runs/${id}/resume`)).toEqual({ resumed: 1 });
  expect(await endOf(id)).toEqual({ state: 'RUN_SUCCESS', result: '4', hasFailed: false });
});

test('of a group that was planned, a step that has become another is not executed', async () => {
  const executed: string[] = [];
  let isCutOff = true;
  const groupOf =
    (...names: string[]): Program =>
    (context) =>
      Promise.all(
        names.map((name) =>
          context.run(name, async () => {
            if (isCutOff) throw new Error('cut off');
            executed.push(name);
          }),
        ),
      );
  deployed = { program: groupOf('one', 'two'), serve: own.serve };
  const url = `${originOf(server)}/workflow`;
  const { workflowRunId } = await clientOf().trigger({ url, retries: 1, retryDelay: '1000' });
  await waypost.advance('100ms');
  isCutOff = false;
  deployed.program = groupOf('one', 'other');
  await waypost.advance('30s');
  const sentence = "This run has step 2 'two' (Run), and the code has 'other' (Run) there now.";
  expect((await explained(workflowRunId)).explanation).toContain(sentence);
  expect(executed).toEqual(['one']);
  deployed.program = groupOf('one', 'two');
  expect((await endOf(workflowRunId)).state).toBe('RUN_SUCCESS');
  expect(executed.toSorted()).toEqual(['one', 'two']);
});
