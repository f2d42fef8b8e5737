/** Parses the requests of the client libraries, which are recorded from the libraries themselves in each run of the test. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { PublishOptions } from '../../../src/protocol/options/settings.ts';
import { readInvocation } from '../../../src/protocol/workflow/invocation.ts';
import { defaultQuotas, nowMs, read } from '../reading.ts';
import { headerMap } from '../refusal.ts';
import { type Library, type Program, type Recording, type Sent, startRecording, type Terms } from './recording.ts';

const URL = 'https://app.example/wf';
const TERMS: Terms = { retries: 2, retryDelay: '1000', flowControl: { key: 'k', parallelism: 2 } };
const OF_TERMS = { maxRetries: 2, retryDelayExpression: '1000', flowControl: { key: 'k', parallelism: 2, periodS: 1 } };

/** With what each generation says that it can do, and whether its steps repeat what the trigger said. */
const GENERATIONS = [
  {
    generation: 'newest' as const,
    features: ['LazyFetch', 'InitialBody', 'WF_DetectTrigger', 'WF_TriggerOnConfig'],
    repeats: false,
  },
  { generation: 'oldest' as const, features: ['LazyFetch', 'InitialBody', 'WF_DetectTrigger'], repeats: true },
];

describe.each(GENERATIONS)('what the $generation library sends', ({ generation, features, repeats }) => {
  let recording: Recording;
  let library: Library;
  beforeEach(async () => {
    recording = await startRecording();
    library = recording.libraries[generation];
  });

  /** What it publishes when `program` is served with a delivery: as it was sent, and as it is read. */
  async function published(program: Program, delivery: Request): Promise<{ sent: Sent; options: PublishOptions }[]> {
    expect((await library.deliver(program, delivery, TERMS)).status).toBe(200);
    return recording.sent.map((sent) => ({ sent, options: read(sent.rawHeaders, { tokenInQuery: true }) }));
  }

  async function onlyOne(program: Program, delivery: Request) {
    const all = await published(program, delivery);
    expect(all).toHaveLength(1);
    return all[0] as (typeof all)[number];
  }

  /** The user's header, where the library sends it with the step. */
  const own = { 'X-User': ['ann'] };
  const repeated = repeats ? own : {};

  it('to trigger a workflow begins a run', async () => {
    const headers = { 'x-user': 'ann' };
    await library.trigger({ url: URL, body: 'p', label: 'l', headers, ...TERMS });
    const [sent] = recording.sent;
    expect(sent).toMatchObject({ path: '/v2/batch', destination: URL, body: 'p' });
    const options = read(sent?.rawHeaders ?? []);
    expect(options).toEqual({
      method: 'POST',
      header: headerMap({
        'Content-Type': ['application/json'],
        'X-User': ['ann'],
        'Upstash-Label': ['l'],
        'Upstash-Workflow-Sdk-Version': ['1'],
      }),
      explicitHeader: expect.anything(),
      run: {
        kind: 'start',
        runId: expect.stringMatching(/^wfr_/),
        features,
        isInvoke: false,
        isBySdk: false,
        isUnknownSdk: false,
        isRest: false,
      },
      settings: {
        dialect: 'upstash',
        ...OF_TERMS,
        labels: ['l'],
        failureCallback: {
          url: URL,
          method: 'POST',
          header: headerMap({
            'Upstash-Label': ['l'],
            'Upstash-Workflow-Failure-Callback': ['true'],
            'Upstash-Workflow-Is-Failure': ['true'],
            'X-User': ['ann'],
          }),
          ...OF_TERMS,
          features,
        },
      },
    });
  });

  it('for a first request to a workflow begins a run with the headers of the user, and none of the connection', async () => {
    const first = new Request(URL, {
      method: 'POST',
      body: '"p"',
      headers: {
        ...{ 'x-user': 'ann', 'content-type': 'application/json', 'user-agent': 'Upstash-QStash' },
        ...{ 'upstash-message-id': 'msg_z', 'upstash-retried': '0', 'upstash-signature': 's' },
        ...{ host: 'app.example', connection: 'keep-alive', 'content-length': '3', te: 'trailers' },
      },
    });
    const { options } = await onlyOne((context) => context.run('a', () => 1), first);
    expect(options.run).toMatchObject({ kind: 'start', isUnknownSdk: false, features });
    expect(options.header).toEqual(
      headerMap({
        'Content-Type': ['application/json'],
        'User-Agent': ['Upstash-QStash'],
        'Upstash-Workflow-Sdk-Version': ['1'],
        ...own,
      }),
    );
  });

  it('for a step appends to the run', async () => {
    const { sent, options } = await onlyOne((context) => context.run('é 水', () => 1), delivery());
    expect(JSON.parse(sent.body)).toMatchObject({ stepId: 1, stepName: 'é 水', out: '1' });
    expect(options.run).toEqual({ kind: 'append', runId: 'wfr_x', callType: 'step', features });
    expect(options.header).toMatchObject({ 'Upstash-Workflow-Sdk-Version': ['1'], ...repeated });
    expect(options.settings).toMatchObject(repeats ? OF_TERMS : { maxRetries: 3 });
    expect(options.settings.failureCallback?.url).toBe(repeats ? 'https://fail.example/' : undefined);
  });

  it('for a sleep appends a step that is delivered later', async () => {
    const { options } = await onlyOne((context) => context.sleep('s', '10s'), delivery());
    expect([options.delayMs, options.run?.kind]).toEqual([10_000, 'append']);
  });

  it('for a sleep until a time says when', async () => {
    const { options } = await onlyOne((context) => context.sleepUntil('s', 1_700_000_500.4), delivery());
    expect(options.notBeforeMs).toBe(1_700_000_500_000);
  });

  it('for steps in parallel appends a plan for each', async () => {
    const both: Program = (context) => Promise.all([context.run('a', () => 1), context.sleep('b', 5)]);
    const plans = await published(both, delivery());
    expect(plans.map(({ sent }) => JSON.parse(sent.body).targetStep)).toEqual([1, 2]);
    expect(plans.map(({ options }) => options.delayMs)).toEqual([undefined, 5_000]);
    for (const { options } of plans) expect(options.run).toMatchObject({ kind: 'append', callType: 'step' });
  });

  it('for a call appends what is to be called, and how its result comes back', async () => {
    const settings = { url: 'https://third.example/x', method: 'PUT', body: 'b', headers: { a: '1' } } as const;
    const { sent, options } = await onlyOne((context) => context.call('é', { ...settings, timeout: 30 }), delivery());
    expect(sent.destination).toBe('https://third.example/x');
    expect(options.run).toEqual({
      kind: 'append',
      runId: 'wfr_x',
      callType: 'toCallback',
      features: ['WF_NoDelete', 'InitialBody'],
    });
    expect(options.method).toBe('PUT');
    expect(options.header).toEqual(headerMap({ 'Content-Type': ['application/json'], A: ['1'] }));
    expect(options.settings).toMatchObject({ maxRetries: 0, timeoutMs: 30_000 });
    const { callback } = options.settings;
    // The newest library says that it fetches, and cannot fetch the result of a call.
    const cannot = generation === 'newest' ? 'LazyFetch' : undefined;
    expect(callback).toMatchObject({ url: URL, method: 'POST', features: features.filter((name) => name !== cannot) });
    expect(callback?.header).toMatchObject({
      'Upstash-Workflow-Callback': ['true'],
      'Upstash-Workflow-Stepid': ['1'],
      'Upstash-Workflow-Stepname': ['é'],
      'Upstash-Workflow-Steptype': ['Call'],
      'Upstash-Workflow-Concurrent': ['1'],
      'Upstash-Workflow-Contenttype': ['application/json'],
      ...repeated,
    });
    expect(callback?.failureCallback?.url).toBe(repeats ? 'https://fail.example/' : undefined);
  });

  it('for the result of a call appends it as a step', async () => {
    const result = { status: 200, header: { 'Content-Type': ['text/plain'] }, body: 'b2s=', retried: 0, maxRetries: 0 };
    const ofCall = {
      ...{ 'upstash-workflow-callback': 'true', 'upstash-workflow-stepid': '1', 'upstash-workflow-stepname': 'c' },
      ...{ 'upstash-workflow-steptype': 'Call', 'upstash-workflow-concurrent': '1' },
      'upstash-workflow-contenttype': 'application/json',
    };
    const request = new Request(URL, {
      method: 'POST',
      body: JSON.stringify(result),
      headers: { ...HEADERS, ...ofCall },
    });
    request.headers.delete('upstash-workflow-sdk-version');
    const call: Program = (context) => context.call('c', { url: 'https://third.example/x' });
    const { sent, options } = await onlyOne(call, request);
    expect(JSON.parse(sent.body)).toMatchObject({ stepId: 1, stepType: 'Call' });
    expect(options.run).toMatchObject({ kind: 'append', callType: 'step' });
    // What told the library of the result must not tell it of another one.
    expect(Object.keys(options.header).filter((name) => name.includes('-Workflow-'))).toEqual([
      'Upstash-Workflow-Sdk-Version',
    ]);
  });

  it('to invoke a workflow begins a run and says which step waits for it', async () => {
    const child = { routeFunction: async () => 1, options: {}, workflowId: 'child' };
    const invoke: Program = (context) =>
      // biome-ignore lint/suspicious/noExplicitAny: made by another entry of the library, which is not loaded for this
      context.invoke('i', { workflow: child as any, body: 'pp', headers: { h: '1' }, retries: 1 });
    const { sent, options } = await onlyOne(invoke, delivery());
    expect(sent.destination).toBe('https://app.example/child');
    expect(options.run).toMatchObject({ kind: 'start', isInvoke: true, features });
    expect(options.header).toMatchObject({ H: ['1'], 'Upstash-Workflow-Invoke-Count': ['1'] });
    const invocation = readInvocation(JSON.parse(sent.body), 'upstash', defaultQuotas, nowMs);
    expect(invocation).toMatchObject({
      payload: Buffer.from(repeats ? '"pp"' : 'pp'),
      runId: 'wfr_x',
      result: { url: URL, settings: repeats ? OF_TERMS : { maxRetries: 3 } },
    });
    expect(invocation.createdAtMs).toBe(repeats ? undefined : 1_700_000_000_123);
    expect(JSON.parse(String(invocation.step))).toEqual({
      stepId: 1,
      stepName: 'i',
      stepType: 'Invoke',
      concurrent: 1,
    });
    expect(invocation.result.header).toMatchObject({ 'Upstash-Workflow-Sdk-Version': ['1'], ...repeated });
    expect(Object.keys(invocation.result.header)).not.toContain('Upstash-Message-Id');
  });

  // The older one knows nothing of being asked.
  if (generation === 'newest') {
    it('when it is asked who it is takes over the run', async () => {
      const asked = delivery({ 'upstash-workflow-unknown-sdk': 'true', 'upstash-workflow-init': 'true' });
      asked.headers.delete('upstash-workflow-sdk-version');
      const { options } = await onlyOne((context) => context.run('a', () => 1), asked);
      expect(options.run).toMatchObject({
        kind: 'start',
        runId: 'wfr_x',
        isBySdk: true,
        isUnknownSdk: false,
        features,
      });
      expect(options.header).toMatchObject({ 'Upstash-Workflow-Sdk-Version': ['1'], ...own });
    });
  }
});

const HEADERS = {
  'upstash-workflow-runid': 'wfr_x',
  'upstash-workflow-url': URL,
  'upstash-workflow-init': 'false',
  'upstash-workflow-createdat': '1700000000123',
  'upstash-workflow-sdk-version': '1',
  'upstash-message-id': 'msg_0',
  'upstash-retried': '0',
  'content-type': 'application/json',
  'x-user': 'ann',
};

/** The first delivery of a run, whose payload is "p". */
function delivery(headers: Record<string, string> = {}): Request {
  const body = JSON.stringify([{ messageId: 'msg_0', body: 'InAi', callType: 'step' }]);
  return new Request(URL, { method: 'POST', body, headers: { ...HEADERS, ...headers } });
}
