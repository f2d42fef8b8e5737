import { describe, expect, it } from 'vitest';
import type { StepSettings } from '../../../src/protocol/options/settings.ts';
import { CURRENT_FEATURES, parseFeatures } from '../../../src/protocol/workflow/generations.ts';
import { readInvocation } from '../../../src/protocol/workflow/invocation.ts';
import { readResultMessage } from '../../../src/protocol/workflow/result-message.ts';
import { fc } from '../../support/fast-check.ts';
import { defaultQuotas, nowMs, read } from '../reading.ts';
import { headerMap, onlyRefuses, refusalOf } from '../refusal.ts';

const START = ['Upstash-Workflow-Init', 'true', 'Upstash-Workflow-RunId', 'wfr_x'];
const STEP = ['Upstash-Workflow-Init', 'false', 'Upstash-Workflow-RunId', 'wfr_x'];
const CALL = [...STEP, 'Upstash-Workflow-CallType', 'toCallback', 'Upstash-Callback', 'https://app.example/wf'];

function statusOf(rawHeaders: string[], request?: Parameters<typeof read>[1]): [number, string] {
  const { status, message } = refusalOf(() => read(rawHeaders, request));
  return [status, message];
}

describe('a message that begins a run', () => {
  it('is one with Workflow-Init: true, and needs nothing else', () => {
    expect(read(['Upstash-Workflow-Init', 'true'])).toEqual({
      method: 'POST',
      header: headerMap({}),
      explicitHeader: headerMap({}),
      settings: { dialect: 'upstash', maxRetries: 3 },
      run: { kind: 'start', features: [], isInvoke: false, isBySdk: false, isUnknownSdk: false, isRest: false },
    });
  });

  it('has the three retries that libraries leave out, whatever the account has by default (contract W 11)', () => {
    expect(read(START, { quotas: { retriesDefault: 7 } }).settings.maxRetries).toBe(3);
    expect(read([], { quotas: { retriesDefault: 7 } }).settings.maxRetries).toBe(7);
  });

  it.each(['Upstash-Workflow-RunId', 'upstash-workflow-runid', 'UPSTASH-WORKFLOW-RUNID'])('is read as %s', (name) => {
    expect(read(['upstash-workflow-init', 'TRUE', name, 'own id'])).toMatchObject({ run: { runId: 'own id' } });
  });

  it('may have an id of 1,024 characters', () => {
    const runId = 'x'.repeat(1_024);
    expect(read(['Upstash-Workflow-Init', 'true', 'Upstash-Workflow-RunId', runId]).run).toMatchObject({ runId });
  });

  it.each([
    'wfr_x#y',
    'wfr_x?y',
    'wfr_x%20y',
    'wfr_x%aFy',
    'wfr_x\\y',
    'wfr_x\ty',
    'orders/42',
    'x/../wfr_y',
    '.',
    '..',
  ])('has no id that libraries could not write into a path as it is: %s (contract W 2)', (runId) => {
    const start = ['Upstash-Workflow-Init', 'true', 'upstash-workflow-runid', runId];
    expect(refusalOf(() => read(start))).toMatchObject({
      status: 400,
      message:
        'invalid Upstash-Workflow-Runid: the id of a run must not contain ?, #, /, \\, a tab, or % before two hexadecimal digits, and must not be . or ..',
    });
    // A run that began before is known by its id, whatever that is.
    for (const known of [
      ['Upstash-Workflow-Init', 'false'],
      [...start, 'Upstash-Workflow-trigger-by-sdk', 'true'],
    ]) {
      expect(read([...known, 'Upstash-Workflow-RunId', runId]).run).toMatchObject({ runId });
    }
  });

  it.each(['50%', 'a..b', '...', 'my order', 'a,b', 'a%zz', 'a+b:c@d'])('may have the id %s', (runId) => {
    expect(read(['Upstash-Workflow-Init', 'true', 'Upstash-Workflow-RunId', runId]).run).toMatchObject({ runId });
  });

  it('means the same in the other dialect, and is delivered in it', () => {
    const rawHeaders = [
      'Waypost-Workflow-Init',
      'true',
      'Waypost-Workflow-RunId',
      'w',
      'Waypost-Feature-Set',
      'LazyFetch',
    ];
    expect(read(rawHeaders)).toMatchObject({
      run: { kind: 'start', runId: 'w', features: ['LazyFetch'] },
      settings: { dialect: 'waypost' },
    });
  });

  it('joins the lines of a feature set, and knows only what it knows (contract W 6)', () => {
    const rawHeaders = [
      ...START,
      'Upstash-Feature-Set',
      'InitialBody, New',
      'Upstash-Feature-Set',
      'LazyFetch ,InitialBody',
    ];
    expect(read(rawHeaders).run?.features).toEqual(['InitialBody', 'LazyFetch']);
    expect(parseFeatures(`${CURRENT_FEATURES.join(',')},,lazyfetch`)).toEqual(CURRENT_FEATURES);
  });

  it('has the features that its headers name, and not those of its query beside them', () => {
    const queryConfig: [string, string][] = [['upstash-feature-set', 'InitialBody']];
    expect(read([...START, 'Upstash-Feature-Set', 'LazyFetch'], { queryConfig }).run?.features).toEqual(['LazyFetch']);
    expect(read(START, { queryConfig }).run?.features).toEqual(['InitialBody']);
  });

  it('is never deduplicated by the rules of plain messages', () => {
    const rawHeaders = [...START, 'Upstash-Deduplication-Id', 'x', 'Upstash-Content-Based-Deduplication', 'true'];
    expect(read(rawHeaders).deduplication).toBeUndefined();
  });

  it.each([
    ['its own header', ['Upstash-Workflow-Unknown-Sdk', 'true']],
    ['a forwarded one', ['Upstash-Forward-Upstash-Workflow-Unknown-Sdk', 'true']],
    ['one forwarded in the other dialect', ['Upstash-Forward-Waypost-Workflow-Unknown-Sdk', '1']],
  ])('asks for the library when it says so in %s, and does not forward that (contract W 5.3)', (_, rawHeaders) => {
    const { run, header } = read([...START, ...rawHeaders]);
    expect(run).toMatchObject({ isUnknownSdk: true });
    expect(header).toEqual(headerMap({}));
  });

  it('does not ask the library that makes itself known, whatever it forwards', () => {
    const asked = ['Upstash-Forward-Upstash-Workflow-Unknown-Sdk', 'true'];
    expect(read([...START, ...asked, 'upstash-workflow-trigger-by-sdk', 'true'])).toMatchObject({
      run: { isBySdk: true, isUnknownSdk: false },
      header: headerMap({}),
    });
  });

  it.each([
    ['Upstash-Workflow-Init', 'yes', 'invalid Upstash-Workflow-Init: must be true or false, not "yes"'],
    ['Upstash-Workflow-RunId', '水', 'invalid Upstash-Workflow-Runid: the value has a control character'],
    ['Upstash-Workflow-RunId', 'x'.repeat(1_025), 'invalid Upstash-Workflow-Runid: longer than 1024 characters'],
    ['Upstash-Retries', '-1', 'invalid Upstash-Retries'],
    ['Upstash-Cron', '* * * * *', 'Upstash-Workflow-Init is not supported for schedules'],
  ])('is refused with 400 for %s: %s', (name, value, message) => {
    const rawHeaders = ['Upstash-Workflow-Init', 'true', name, value];
    const ownInit = name === 'Upstash-Workflow-Init' ? [name, value] : rawHeaders;
    expect(statusOf(ownInit)).toEqual([400, expect.stringContaining(message)]);
  });

  it('is refused with 400 in a queue', () => {
    expect(statusOf(START, { context: 'enqueue' })).toEqual([400, 'Upstash-Workflow-Init is not supported for queues']);
  });
});

describe('a message that continues a run', () => {
  it('says which, and what it is', () => {
    const rawHeaders = [...STEP, 'Upstash-Workflow-CreatedAt', '1700000000123', 'Upstash-Feature-Set', 'LazyFetch'];
    expect(read(rawHeaders).run).toEqual({
      kind: 'append',
      runId: 'wfr_x',
      createdAtMs: 1_700_000_000_123,
      callType: 'step',
      features: ['LazyFetch'],
    });
  });

  it.each(['0', 'NaN', 'undefined', '1.5', '-1'])('does not know when its run began when it says %s', (value) => {
    expect(read([...STEP, 'Upstash-Workflow-CreatedAt', value]).run).not.toHaveProperty('createdAtMs');
  });

  it.each([
    ['toCallback', 'toCallback'],
    ['tocallback', 'toCallback'],
    ['stepConfig', 'stepConfig'],
    ['step', 'step'],
  ])('has the call type %s', (sent, meant) => {
    const rawHeaders = [...STEP, 'Upstash-Workflow-CallType', sent, 'Upstash-Callback', 'https://app.example/wf'];
    expect(read(rawHeaders).run).toMatchObject({ callType: meant });
  });

  const FOR_STEP = [...STEP, 'Upstash-Feature-Set', 'WF_TriggerOnConfig,WF_StepConfig'];
  const RETRIES = ['Upstash-Retries', '3'];
  const FLOW_CONTROL = ['Upstash-Flow-Control-Key', 'k', 'Upstash-Flow-Control-Value', 'parallelism=2'];

  it.each<[string, string[], StepSettings]>([
    ['nothing', [], {}],
    ['retries, also the number that they are without it', RETRIES, { maxRetries: 3 }],
    ['a retry delay', ['Upstash-Retry-Delay', '1000'], { retryDelayExpression: '1000' }],
    ['flow control', FLOW_CONTROL, { flowControl: { key: 'k', parallelism: 2, periodS: 1 } }],
  ])('says what it sets for a step: %s', (_, headers, stepSettings) => {
    expect(read([...FOR_STEP, ...headers]).run).toMatchObject({ stepSettings });
  });

  it('sets nothing for a step without the feature, or when it is a call', () => {
    const call = ['Upstash-Workflow-CallType', 'toCallback', 'Upstash-Callback', 'https://app.example/wf'];
    for (const headers of [
      [...STEP, ...RETRIES],
      [...FOR_STEP, ...RETRIES, ...call],
    ])
      expect(read(headers).run).not.toHaveProperty('stepSettings');
  });

  it('is answered as if its run were over when it names none (contract W 4.4)', () => {
    expect(refusalOf(() => read(['Upstash-Workflow-Init', 'false']))).toMatchObject({ status: 400, code: 'run_over' });
  });

  it.each([
    ['Upstash-Retries', 'many', 'invalid Upstash-Retries'],
    ['Upstash-Delay', '-5s', 'invalid Upstash-Delay'],
    ['Upstash-Retry-Delay', 'sin(1)', 'invalid Upstash-Retry-Delay'],
    ['Upstash-Method', 'TRACE', 'invalid Upstash-Method'],
    ['Upstash-Workflow-CallType', 'fromCallback', 'invalid Upstash-Workflow-Calltype'],
    ['Upstash-Workflow-CallType', 'toCallback', 'invalid Upstash-Callback: a call needs the URL'],
    ['Upstash-Forward-X', 'a\nb', 'invalid Upstash-Forward-X'],
    ['Upstash-Cron', '* * * * *', 'Upstash-Workflow-Init is not supported for schedules'],
    ['Upstash-Label', 'ä', 'invalid label'],
  ])(
    'is never refused with 400 for %s: %s, which would end the run in silence (contract W 4.7)',
    (name, value, message) => {
      expect(statusOf([...STEP, name, value])).toEqual([422, expect.stringContaining(message)]);
    },
  );

  it('is refused with 422 in a queue, and when the query says what it is', () => {
    expect(statusOf(STEP, { context: 'enqueue' })[0]).toBe(422);
    const queryConfig: [string, string][] = [['upstash-workflow-init', 'false']];
    expect(statusOf(['Upstash-Workflow-RunId', 'r', 'Upstash-Retries', 'x'], { queryConfig })[0]).toBe(422);
  });

  it('is not what a header of somebody else says, whose name looks alike', () => {
    expect(statusOf(['X-Other-Workflow-Init', 'false', 'Upstash-Retries', 'x'])[0]).toBe(400);
  });

  it('is refused for what it sets for a step as for anything else', () => {
    expect(statusOf([...FOR_STEP, 'Upstash-Retries', '1000000'])[0]).toBe(412);
    expect(statusOf([...FOR_STEP, 'Upstash-Flow-Control-Key', 'k'])[0]).toBe(422);
  });

  it('is refused with 412 for a limit', () => {
    expect(statusOf([...STEP, 'Upstash-Retries', '1000000'])).toEqual([
      412,
      'quota maxRetries exceeded, current limit: 10',
    ]);
  });

  it('may say when its result or failure is to be told, which nobody asks', () => {
    const delays = ['Upstash-Callback-Delay', '5s', 'Upstash-Failure-Callback-Not-Before', '1'];
    expect(read([...CALL, ...delays]).settings).toEqual(read(CALL).settings);
    expect(refusalOf(() => read(['Upstash-Callback', 'https://h/', 'Upstash-Callback-Delay', '5s'])).status).toBe(400);
  });
});

describe('the result of a call (contract W 8.3, 14.5)', () => {
  const FETCHING = [...CALL, 'Upstash-Callback-Feature-Set', 'LazyFetch,InitialBody'];

  it.each([
    [undefined, true],
    ['@upstash/workflow@v0.2.23', true],
    ['@upstash/workflow@v1.2.9', true],
    ['@upstash/workflow@v1.3.2', false],
    ['@upstash/workflow@v1.10.0', false],
    ['@upstash/workflow@v2.3.0', true],
    ['upstash-workflow-py@v1.3.0', true],
    ['own-@upstash/workflow@v1.3.0', true],
  ])('is sent in full to the library that cannot fetch it: with %s it is fetched: %s', (library, isFetched) => {
    const said = library === undefined ? [] : ['Upstash-Telemetry-Sdk', library];
    const { callback } = read([...FETCHING, ...said]).settings;
    expect(callback?.features).toEqual(isFetched ? ['LazyFetch', 'InitialBody'] : ['InitialBody']);
  });

  it('does not change the dialect with the name of the library', () => {
    const rawHeaders = ['Waypost-Retries', '1', 'Upstash-Telemetry-Sdk', 'any'];
    expect(read(rawHeaders).settings.dialect).toBe('waypost');
  });
});

describe('a header that is forwarded with a workflow message (contract W 9.4)', () => {
  const forwarded = (name: string, rawHeaders = STEP) => read([...rawHeaders, `Upstash-Forward-${name}`, 'v']).header;

  it.each([
    ...[
      'Host',
      'Content-Length',
      'Connection',
      'Transfer-Encoding',
      'Keep-Alive',
      'Upgrade',
      'TE',
      'Trailer',
      'Expect',
    ],
    ...['Proxy-Authorization', 'Proxy-Anything', 'Content-Type'],
    ...['Upstash-Message-Id', 'upstash-retried', 'Upstash-Signature', 'Waypost-Topic-Name', 'Upstash-Labels'],
  ])('called %s is dropped', (name) => {
    for (const rawHeaders of [START, STEP, CALL]) expect(forwarded(name, rawHeaders)).toEqual(headerMap({}));
  });

  it.each(['X-Own', 'Authorization', 'User-Agent', 'Upstash-Label', 'Upstash-Workflow-Invoke-Count', 'Upstashed'])(
    'called %s is delivered',
    (name) => {
      for (const rawHeaders of [START, STEP, CALL]) expect(forwarded(name, rawHeaders)).toEqual({ [name]: ['v'] });
    },
  );

  it.each(['Workflow-Callback', 'Workflow-Is-Failure', 'Workflow-Failure-Callback', 'Workflow-Unknown-Sdk'])(
    'called Upstash-%s would make another message of a step, but not of a call',
    (bare) => {
      for (const name of [`Upstash-${bare}`, `Waypost-${bare}`]) {
        expect(forwarded(name, STEP)).toEqual(headerMap({}));
        expect(forwarded(name, START)).toEqual(headerMap({}));
        expect(forwarded(name, CALL)).toEqual({ [name]: ['v'] });
      }
    },
  );

  it('reaches a callback by the same rules, marks included', () => {
    const rawHeaders = [
      ...CALL,
      ...['Upstash-Callback-Forward-Host', 'h', 'Upstash-Callback-Forward-Content-Type', 't'],
      ...['Upstash-Callback-Forward-Upstash-Retried', '1', 'Upstash-Callback-Forward-X', 'v'],
      ...['Upstash-Callback-Forward-Upstash-Workflow-Callback', 'true'],
    ];
    expect(read(rawHeaders).settings.callback?.header).toEqual({ X: ['v'], 'Upstash-Workflow-Callback': ['true'] });
  });

  it('may have letters that only UTF-8 can write, and they arrive as its bytes', () => {
    const { callback } = read([...CALL, 'Upstash-Callback-Forward-Upstash-Workflow-StepName', 'é 水']).settings;
    const [value = ''] = callback?.header['Upstash-Workflow-Stepname'] ?? [];
    expect(Buffer.from(value, 'latin1').toString('utf8')).toBe('é 水');
    expect(read([...STEP, 'Upstash-Forward-X', 'é']).header).toEqual({ X: ['é'] });
  });

  it('has the content type of the request, not one that is forwarded', () => {
    const rawHeaders = [...STEP, 'content-type', 'text/plain', 'Upstash-Forward-content-type', 'image/png'];
    expect(read(rawHeaders).header).toEqual({ 'Content-Type': ['text/plain'] });
  });
});

describe('a trigger', () => {
  const trigger = (rawHeaders: string[]) =>
    read(rawHeaders, { context: 'trigger', failureUrl: 'https://app.example/wf' });
  const rest = { features: CURRENT_FEATURES, isInvoke: false, isBySdk: false, isRest: true };

  it('begins a run that speaks the protocol of today (contract W 5.2)', () => {
    expect(trigger(['Upstash-Forward-X', 'v', 'Upstash-Retries', '0'])).toEqual({
      method: 'POST',
      header: headerMap({ X: ['v'], 'Upstash-Workflow-Sdk-Version': ['1'] }),
      explicitHeader: headerMap({ X: ['v'] }),
      settings: { dialect: 'upstash', maxRetries: 0 },
      run: { kind: 'start', ...rest, isUnknownSdk: false },
    });
  });

  it('takes of the protocol only the id of the run from its sender', () => {
    const sent = [
      'Upstash-Workflow-Init',
      'false',
      'Upstash-Feature-Set',
      'WF_NoDelete',
      'Upstash-Workflow-Invoke',
      'true',
    ];
    expect(trigger([...sent, 'Upstash-Workflow-RunId', 'abc']).run).toEqual({
      kind: 'start',
      runId: 'abc',
      ...rest,
      isUnknownSdk: false,
    });
  });

  it('asks for the library where its sender wants that', () => {
    expect(trigger(['Upstash-Workflow-Unknown-Sdk', 'true']).run).toMatchObject({ isUnknownSdk: true, isRest: true });
  });

  it('is in the dialect of its sender', () => {
    const { header, settings } = trigger(['Waypost-Label', 'l']);
    expect([header, settings.dialect]).toEqual([{ 'Waypost-Workflow-Sdk-Version': ['1'] }, 'waypost']);
  });

  it('has failures told to the workflow when it says only how', () => {
    const { failureCallback } = trigger(['Upstash-Failure-Callback-Retries', '1']).settings;
    expect(failureCallback).toMatchObject({ url: 'https://app.example/wf', maxRetries: 1 });
    const named = trigger(['Upstash-Failure-Callback', 'https://other.example/']).settings.failureCallback;
    expect(named?.url).toBe('https://other.example/');
  });

  it('takes the word of a library that makes itself known', () => {
    const sent = ['Upstash-Workflow-Trigger-By-Sdk', 'true', 'Upstash-Feature-Set', 'LazyFetch'];
    expect(trigger(sent).run).toMatchObject({ isBySdk: true, isRest: false, features: ['LazyFetch'] });
  });

  it('is refused with 400 for what is wrong with it, whatever it says of a run', () => {
    expect(refusalOf(() => trigger([...STEP, 'Upstash-Retries', 'x'])).status).toBe(400);
  });

  it('is refused as a schedule', () => {
    const { status, message } = refusalOf(() => trigger(['Upstash-Cron', '@daily']));
    expect([status, message]).toEqual([400, 'Upstash-Cron is not supported for triggers']);
  });
});

describe('a result that a run waits for', () => {
  const part = (rawHeaders: string[]) =>
    readResultMessage({ url: 'https://app.example/wf', rawHeaders, dialect: 'waypost' }, defaultQuotas, nowMs);

  it('is read as a step, in the dialect of what it follows from', () => {
    const rawHeaders = [...STEP, 'Upstash-Forward-X', 'v', 'Upstash-Retries', '1', 'Upstash-Callback', 'https://h/'];
    expect(part(rawHeaders)).toEqual({
      url: 'https://app.example/wf',
      header: headerMap({ 'Content-Type': ['application/json'], X: ['v'] }),
      settings: { dialect: 'waypost', maxRetries: 1 },
    });
  });

  it('needs no headers, and keeps the content type that it has', () => {
    const own = readResultMessage(
      { url: 'https://app.example/wf', rawHeaders: [], dialect: 'upstash' },
      { ...defaultQuotas, retriesDefault: 7 },
      nowMs,
    );
    expect(own.settings.maxRetries).toBe(3);
    expect(part(['content-type', 'text/plain']).header).toEqual({ 'Content-Type': ['text/plain'] });
  });

  it('does not take the authorization along with which it was asked for', () => {
    const sent = ['Upstash-Header-Forward', 'true', 'Authorization', 'Bearer own', 'X-Own', 'v'];
    expect(part(sent).header).toEqual({ 'Content-Type': ['application/json'], 'X-Own': ['v'] });
  });

  it('is refused with 422, or 412 for a limit', () => {
    expect(refusalOf(() => part(['Upstash-Retries', 'x'])).status).toBe(422);
    expect(refusalOf(() => part(['Upstash-Retries', '11'])).status).toBe(412);
  });
});

describe('an invocation', () => {
  const BODY = { workflowRunId: 'wfr_p', workflowUrl: 'https://app.example/p', step: { stepId: 7, other: null } };
  const invocation = (body: unknown) => readInvocation(body, 'upstash', defaultQuotas, nowMs);

  it('may have no payload, no headers and no time of its parent', () => {
    expect(invocation(BODY)).toEqual({
      payload: Buffer.from(''),
      runId: 'wfr_p',
      step: Buffer.from('{"stepId":7,"other":null}'),
      result: {
        url: 'https://app.example/p',
        header: headerMap({ 'Content-Type': ['application/json'] }),
        settings: { dialect: 'upstash', maxRetries: 3 },
      },
    });
    expect(invocation({ ...BODY, workflowRunCreatedAt: 0, body: null })).not.toHaveProperty('createdAtMs');
  });

  it('has a payload that is text, byte for byte', () => {
    expect(invocation({ ...BODY, body: '{"水":1}' }).payload).toEqual(Buffer.from('{"水":1}'));
  });

  it.each([
    [null, 'an object is needed'],
    ['text', 'an object is needed'],
    [[], 'an object is needed'],
    [{ ...BODY, body: {} }, 'body must be a string'],
    [{ ...BODY, workflowRunId: 1 }, 'workflowRunId must be a string'],
    [{ ...BODY, workflowRunId: '' }, 'workflowRunId must be a string'],
    [{ ...BODY, workflowUrl: undefined }, 'workflowUrl must be a string'],
    [{ ...BODY, workflowUrl: 'ftp://h/' }, 'workflowUrl: endpoint has invalid scheme'],
    [{ ...BODY, step: 'x' }, 'step must be an object'],
    [{ ...BODY, step: { stepId: 0 } }, 'step must be an object with a stepId'],
    [{ ...BODY, headers: { a: 1 } }, 'a must be a string'],
    [{ ...BODY, headers: { 'Upstash-Retries': 'x' } }, 'invalid Upstash-Retries'],
  ])('is refused with 422 when it is %j', (body, reason) => {
    const { status, message } = refusalOf(() => invocation(body));
    expect([status, message]).toEqual([422, expect.stringContaining(reason)]);
  });
});

describe('whatever a running workflow sends', () => {
  const name = fc.constantFrom(
    ...[
      'Workflow-CallType',
      'Workflow-CreatedAt',
      'Workflow-Url',
      'Feature-Set',
      'Retries',
      'Delay',
      'Timeout',
      'Label',
    ],
    ...[
      'Callback',
      'Callback-Retries',
      'Callback-Feature-Set',
      'Failure-Callback',
      'Forward-X',
      'Callback-Forward-Host',
    ],
    ...['Cron', 'Method', 'Redact-Fields', 'Flow-Control-Key', 'Workflow-Trigger-By-Sdk', 'Deduplication-Id'],
  );
  const value = fc.oneof(
    fc.constantFrom('true', '1', 'https://h/', 'toCallback', 'LazyFetch'),
    fc.string({ unit: 'binary' }),
  );
  const headers = fc.array(fc.tuple(name, value), { maxLength: 10 });

  it('is read or refused, and never with 400', () => {
    fc.assert(
      fc.property(headers, fc.constantFrom('publish', 'enqueue', 'result'), (pairs, context) => {
        const rawHeaders = [...STEP, ...pairs.flatMap(([bare, text]) => [`Upstash-${bare}`, text])];
        onlyRefuses(() => {
          try {
            read(rawHeaders, { context });
          } catch (error) {
            expect(error).toMatchObject({ status: expect.toSatisfy((status) => status === 422 || status === 412) });
            throw error;
          }
        });
      }),
      { numRuns: 500 },
    );
  });
});
