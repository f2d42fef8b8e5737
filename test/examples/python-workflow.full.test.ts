/**
 * Checks that the contract of checkpoints suffices to write a library: `examples/python-workflow` was written from the contract
 * alone.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Client, serve, type WorkflowContext } from '../../packages/workflow/src/index.ts';
import { DEVELOPMENT_ACCOUNTS } from '../../src/config/development.ts';
import type { RunningServer } from '../../src/server/server.ts';
import { obstacleTo } from '../support/debian.ts';
import { startDevelopmentServer } from '../support/development-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { Endpoints } from '../support/listen.ts';
import { SeededRandom } from '../support/seeded-random.ts';

type Handler = (request: Request) => Response | Promise<Response>;

const [{ token, signingKeys }] = DEVELOPMENT_ACCOUNTS;
const obstacle = obstacleTo('python3');
const authorization = `Bearer ${token}`;
/** Another number sees other switches. */
const SEED = 7;
const RUNS = 12;

let waypost: RunningServer;
let environment: Record<string, string>;
let client: Client;
/** Answers the steps that tell the test of themselves. */
let hear: (what: string) => unknown = () => {};
const endpoints = new Endpoints();
const apps: App[] = [];

beforeAll(async () => {
  waypost = await startDevelopmentServer();
  client = new Client({ baseUrl: waypost.url, token });
  environment = {
    QSTASH_URL: waypost.url,
    QSTASH_TOKEN: token,
    QSTASH_CURRENT_SIGNING_KEY: signingKeys.current,
    QSTASH_NEXT_SIGNING_KEY: signingKeys.next,
    TEST_URL: await listen(async (request) => {
      await hear(decodeURIComponent(new URL(request.url).search.slice(1)));
      return new Response();
    }),
  };
});
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.kill()));
});
afterAll(async () => {
  endpoints.close();
  await waypost?.stop(0);
});

/** The app that is to respond may have been killed. */
const listen = (handler: Handler): Promise<string> =>
  endpoints.listen((from, to) => void handle(from, to, handler).catch(() => to.destroy()));

async function handle(from: IncomingMessage, to: ServerResponse, handler: Handler): Promise<void> {
  const { method = 'GET', url } = from;
  const headers = from.headers as Record<string, string>;
  const body = await text(from);
  const request = new Request(`http://${from.headers.host}${url}`, { method, headers, ...(body && { body }) });
  const answer = await handler(request);
  to.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
}

/** A process that serves workflows in Python, and what it has printed. */
class App {
  readonly url: string;
  readonly lines: string[] = [];
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#child = child;
    apps.push(this);
  }

  static async start(path: string, port: number, serverUrl = waypost.url): Promise<App> {
    const env = { PATH: process.env['PATH'], ...environment, PORT: String(port), QSTASH_URL: serverUrl };
    const file = join(import.meta.dirname, path);
    const child = spawn('python3', ['-B', file], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const app = new App(`http://127.0.0.1:${port}`, child);
    createInterface(child.stdout).on('line', (line) => app.lines.push(line));
    await eventually('the app to be ready', () => app.lines.length > 0);
    return app;
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}

const startWorkflows = async (serverUrl?: string) => App.start('workflows.py', await freePort(), serverUrl);

async function endOf(workflowRunId: string) {
  return eventually(`the end of ${workflowRunId}`, async () => {
    const [run] = (await client.logs({ workflowRunId })).runs;
    return run && run.workflowState !== 'RUN_STARTED' && run;
  });
}

/** Results of steps, in the order of their ids, as the log shows them. */
function resultsOf({ steps }: Awaited<ReturnType<typeof endOf>>): unknown[] {
  const results = steps.flatMap((group) => (group.type === 'next' ? [] : group.steps));
  return results.filter(({ stepType }) => stepType === 'Run').map(({ out }) => out);
}

/** In TypeScript what `travels` in workflows.py is in Python. */
async function travels(context: WorkflowContext<{ event: string }>): Promise<unknown[]> {
  const by = (step: string) => `${step} by TypeScript`;
  const first = await context.run('first', () => by('first'));
  const together = await Promise.all(['left', 'middle', 'right'].map((step) => context.run(step, () => by(step))));
  await context.sleep('nap', 0.1);
  const { eventData } = await context.waitForEvent('news', context.requestPayload.event, { timeout: '1m' });
  return [first, ...together, eventData, await context.run('last', () => by('last'))];
}

/**
 * Serves `travels` with either library, by chance for each delivery: by that of its run, so that it is the seed's and not that of the
 * order in which runs are called. It stands between them and the server: some checkpoints go there
 * twice, and after some the call is not told what it holds, so that another one goes on. Its URL.
 */
async function serveWithEither(random: SeededRandom): Promise<string> {
  let inPython = '';
  const url = await listen((request) => {
    if (new URL(request.url).pathname === '/v2/waypost/checkpoints') return checkpoint(request);
    return switchOf(request).chance(0.5) ? handler(request) : forward(request, inPython);
  });
  const { handler } = serve(travels, { env: { ...environment, QSTASH_URL: url } });
  const switches = new Map<string, SeededRandom>();
  const switchOf = ({ headers }: Request): SeededRandom => {
    const runId = headers.get('upstash-workflow-runid') ?? '';
    const own = switches.get(runId) ?? new SeededRandom(SEED * RUNS + Number(runId.split('-').at(-1)));
    switches.set(runId, own);
    return own;
  };
  const sent = new Set<string>();
  const checkpoint: Handler = async (request) => {
    const body = await request.clone().text();
    const answer = await forward(request, waypost.url);
    if (answer.status !== 200) return answer;
    const isFirst = !sent.has(body);
    sent.add(body);
    if (isFirst && random.chance(0.3)) return new Response('', { status: 503 });
    if (random.chance(0.4)) return answer;
    const { entries } = (await answer.json()) as { entries: { messageId: string }[] };
    return Response.json({ entries: entries.map(({ messageId }) => ({ messageId })) });
  };
  inPython = (await startWorkflows(url)).url;
  return `${url}/travels`;
}

async function forward(request: Request, baseUrl: string): Promise<Response> {
  const own = ['host', 'connection', 'content-length', 'transfer-encoding'];
  const headers = [...request.headers].filter(([name]) => !own.includes(name));
  const { pathname } = new URL(request.url);
  const answer = await fetch(`${baseUrl}${pathname}`, { method: 'POST', headers, body: await request.text() });
  const answered = [...answer.headers].filter(([name]) => name.startsWith('upstash-'));
  return new Response(await answer.text(), { status: answer.status, headers: answered });
}

describe.skipIf(obstacle !== undefined)(`workflows in Python${obstacle ? ` (skipped: ${obstacle})` : ''}`, () => {
  it('are served by the app of the README, each step done once, across a sleep', async () => {
    const app = await App.start('../../examples/python-workflow/app.py', await freePort());
    const { workflowRunId } = await client.trigger({ url: `${app.url}/order`, body: { order: 7 } });
    expect(await endOf(workflowRunId)).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '"sent"' });
    expect(app.lines).toEqual(['ready', 'the goods of order 7 and invoice 7 go to 12 Main Street']);
  });

  it(`are taken over by @waypost/workflow and take over from it, at any step (seed ${SEED})`, async () => {
    const random = new SeededRandom(SEED);
    const url = await serveWithEither(random);
    const travelled = await Promise.all(
      Array.from({ length: RUNS }, async (_, index) => {
        const event = `event-${index}`;
        const { workflowRunId } = await client.trigger({
          url,
          body: { event },
          retries: 0,
          workflowRunId: `travel-${index}`,
        });
        await client.notify({ eventId: event, eventData: 'heard', workflowRunId });
        const run = await endOf(workflowRunId);
        const results = JSON.parse(run.workflowRunResponse ?? '[]') as string[];
        const steps = results.map((result) => result.replace(/ by .*/, ''));
        expect(steps).toEqual(['first', 'left', 'middle', 'right', 'heard', 'last']);
        const executed = results.filter((result) => result.includes(' by '));
        expect(resultsOf(run)).toEqual(executed.map((result) => JSON.stringify(result)));
        return new Set(executed.map((result) => result.replace(/.* by /, '')));
      }),
    );
    expect(travelled.filter((libraries) => libraries.size === 2).length).toBeGreaterThan(RUNS / 2);
  });

  it('go on after the step that was kept last when their process is killed', async () => {
    const app = await startWorkflows();
    const heard: string[] = [];
    hear = async (what) => {
      heard.push(what);
      if (heard.length !== 2) return;
      await app.kill();
      await App.start('workflows.py', Number(new URL(app.url).port));
    };
    const { workflowRunId } = await client.trigger({ url: `${app.url}/tells`, retryDelay: '10', retries: 100 });
    expect(await endOf(workflowRunId)).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '"told"' });
    expect(heard).toEqual(['one', 'two', 'two', 'three']);
  });

  it('stop in a call that the server has given up, and go on in another', async () => {
    const { url } = await startWorkflows();
    const heard: string[] = [];
    let secondCall = () => {};
    const called = new Promise<void>((resolve) => {
      secondCall = resolve;
    });
    hear = async (what) => {
      heard.push(what);
      if (heard.length === 1) await called;
      if (heard.length === 2) secondCall();
    };
    await triggerWith({ 'Upstash-Timeout': '1s', 'Upstash-Workflow-RunId': 'wfr_slow' }, `${url}/tells`);
    expect(await endOf('wfr_slow')).toMatchObject({ workflowState: 'RUN_SUCCESS' });
    expect(heard).toEqual(['one', 'one', 'two', 'three']);
  });

  it('stop when their run is cancelled', async () => {
    const { url } = await startWorkflows();
    const heard: string[] = [];
    hear = (what) => {
      heard.push(what);
      return what === 'two' && client.cancel(workflowRunId);
    };
    const workflowRunId = 'wfr_cancelled';
    await client.trigger({ url: `${url}/tells`, workflowRunId: 'cancelled' });
    expect(await endOf(workflowRunId)).toMatchObject({ workflowState: 'RUN_CANCELED' });
    // The call has ended.
    const log = `${waypost.url}/v2/workflows/messageLogs?workflowRunId=${workflowRunId}`;
    await eventually('the end of the message', async () => {
      const { events } = (await (await fetch(log, { headers: { authorization } })).json()) as {
        events: { state: string }[];
      };
      return events.some(({ state }) => state === 'CANCELED');
    });
    expect(heard).toEqual(['one', 'two']);
  });

  it('repeat the branch of a group that has failed, and no other', async () => {
    const { url } = await startWorkflows();
    const { workflowRunId } = await client.trigger({ url: `${url}/stumbles`, retryDelay: '10', retries: 1 });
    expect((await endOf(workflowRunId)).workflowRunResponse).toBe('[1, 2]');
  });

  it('fail at once if they say so, and are told of it', async () => {
    const { url } = await startWorkflows();
    const heard: string[] = [];
    hear = (what) => heard.push(what);
    const { workflowRunId } = await client.trigger({ url: `${url}/refuses` });
    const run = await endOf(workflowRunId);
    expect([run.workflowState, resultsOf(run)]).toEqual(['RUN_FAILED', ['1']]);
    await eventually('the failure to be told', () => heard.length > 0);
    expect(heard).toEqual([`${workflowRunId} has failed: NonRetryable never`]);
  });

  it('are parked while the code is other than what their run has behind it', async () => {
    const { url } = await startWorkflows();
    const ask = async (method: string, path: string) =>
      (await fetch(`${waypost.url}${path}`, { method, headers: { authorization } })).json();
    const { workflowRunId } = await client.trigger({ url: `${url}/changes`, retries: 0 });
    await client.notify({ eventId: 'go-on', eventData: 'heard', workflowRunId });
    for (const changed of ["has 'other' (Run) there", 'returns after step 0']) {
      await eventually(`the run to be parked, since the code ${changed}`, async () =>
        JSON.stringify(await ask('GET', `/v2/workflows/runs/${workflowRunId}/explain`)).includes(
          `the code ${changed} now`,
        ),
      );
      expect(await ask('POST', `/v2/waypost/runs/${workflowRunId}/resume`)).toEqual({ resumed: 1 });
    }
    expect(await endOf(workflowRunId)).toMatchObject({ workflowRunResponse: '"heard"' });
  });

  it('get nothing for a wait that nobody ends', async () => {
    const { url } = await startWorkflows();
    const { workflowRunId } = await client.trigger({ url: `${url}/expires` });
    expect(await endOf(workflowRunId)).toMatchObject({ workflowState: 'RUN_SUCCESS' });
  });

  it('do nothing for those who cannot sign', async () => {
    const { url } = await startWorkflows();
    const body = '[{"messageId":"msg_1","body":"","callType":"step"}]';
    const genuine = { key: signingKeys.next, body, expiresInS: 60 };
    const forged = [
      { ...genuine, key: 'another' },
      { ...genuine, body: '[]' },
      { ...genuine, expiresInS: -60 },
    ];
    const statuses = [...forged, genuine].map(async (by) => {
      return (await fetch(`${url}/tells`, { method: 'POST', body, headers: { 'Upstash-Signature': signedBy(by) } }))
        .status;
    });
    expect(await Promise.all(statuses)).toEqual([403, 403, 403, 501]);
  });
});

function signedBy({ key, body, expiresInS }: { key: string; body: string; expiresInS: number }): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const exp = Math.floor(Date.now() / 1000) + expiresInS;
  const hash = createHash('sha256').update(body).digest('base64url');
  const signed = `${part({ alg: 'HS256' })}.${part({ nbf: exp - 300, exp, body: hash })}`;
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
}

/** Triggers a run under terms that the client has no name for. */
async function triggerWith(headers: Record<string, string>, url: string): Promise<void> {
  const answer = await fetch(`${waypost.url}/v2/trigger/${url}`, {
    method: 'POST',
    headers: { authorization, 'Upstash-Retry-Delay': '10', ...headers },
  });
  expect(answer.ok).toBe(true);
}
