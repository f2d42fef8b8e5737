/**
 * The requests of allowed size that take the most event-loop time: large bodies, and bodies with the maximum number of
 * small elements. All have a valid token; most are rejected.
 */
import { randomBytes } from 'node:crypto';
import { DEVELOPMENT_TOKEN } from '../waypost-process.ts';

export interface HeavyRequest {
  name: string;
  method: string;
  target: string;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
  /** Sent without a Content-Length. */
  isChunked?: boolean;
}

const MIB = 1024 ** 2;
/** No server listens on this port, and the delay keeps attempts out of the measurement. */
const URL_TEXT = 'http://127.0.0.1:1/';
const LATER = { 'Upstash-Delay': '1h' };

function batch(name: string, json: string | Buffer, isChunked = false): HeavyRequest {
  return { name: `batch: ${name}`, method: 'POST', target: '/v2/batch', body: json, isChunked };
}

/** A batch of `count` items with the same `body`, which is already JSON text. */
function bodies(count: number, body: string, headers: object = LATER): string {
  const item = `{"destination":"${URL_TEXT}","headers":${JSON.stringify(headers)},"body":"${body}"}`;
  return `[${Array.from({ length: count }, () => item).join(',')}]`;
}

function manyHeaders(count: number, name: string): object {
  return Object.fromEntries(Array.from({ length: count }, (_, nth) => [`${name}${nth}`, 'v']));
}

function fill(unit: string, bytes: number): string {
  return unit.repeat(Math.floor(bytes / unit.length));
}

function lines(count: number, name: string, value = 'v'): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, nth) => [`${name}${nth}`, value]));
}

/** A generator, since all requests together would take gigabytes of memory. */
export function* heavyBatches(): Generator<HeavyRequest> {
  const withHeaders = (headers: object) => JSON.stringify([{ destination: URL_TEXT, headers }]);
  yield batch('an item with 400,000 headers to forward', withHeaders(manyHeaders(400_000, 'Upstash-Forward-')));
  yield batch('an item with 900,000 unknown headers', withHeaders(manyHeaders(900_000, 'X-')));
  yield batch(
    'an item with 1,000 lines of headers',
    withHeaders({ ...LATER, ...manyHeaders(990, 'Upstash-Forward-') }),
  );
  yield batch(
    '1,000 items with 100 headers each',
    JSON.stringify(
      Array.from({ length: 1_000 }, () => ({
        destination: URL_TEXT,
        headers: { ...LATER, ...manyHeaders(98, 'Upstash-Forward-') },
      })),
    ),
  );
  yield batch(
    '1,000 items with 990 headers each',
    JSON.stringify(
      Array.from({ length: 1_000 }, () => ({
        destination: URL_TEXT,
        headers: { ...LATER, ...manyHeaders(900, 'Upstash-Forward-') },
      })),
    ),
  );
  yield batch('9 bodies of 10 MiB', bodies(9, fill('x', 10 * MIB)));
  yield batch('9 bodies of 10 MiB, chunked', bodies(9, fill('x', 10 * MIB)), true);
  yield batch(
    '9 bodies of 10 MiB, content-based deduplication',
    bodies(9, fill('x', 10 * MIB), { ...LATER, 'Upstash-Content-Based-Deduplication': 'true' }),
  );
  yield batch('16 MiB of escapes in each of 6 bodies', bodies(6, fill('\\u00e9', 16 * MIB)));
  yield batch('9 non-ASCII bodies', bodies(9, fill('\u00e9', 5 * MIB)));
  yield batch('900 bodies of 100 KiB', bodies(900, fill('x', 0.1 * MIB)));
  yield batch('1,000 items', bodies(1_000, 'x'));
  yield batch('a million empty objects', `[${fill('{},', 3_000_000)}{}]`);
  yield batch('99 MiB of opening brackets', fill('[', 99 * MIB));
  yield batch('900,000 nested arrays', `${fill('[', 900_000)}${fill(']', 900_000)}`);
  yield batch('99 MiB of spaces', `[${fill(' ', 99 * MIB)}]`);
  yield batch('one string of 99 MiB', `["${fill('x', 99 * MIB)}"]`);
  yield batch('one number of 99 MiB', `[${fill('1', 99 * MIB)}]`);
  yield batch('an unterminated string of 99 MiB', `["${fill('x', 99 * MIB)}`);
  yield batch('900,000 different members', JSON.stringify([manyHeaders(900_000, 'm')]));
  yield batch(
    'a header with 900,000 values',
    JSON.stringify([{ destination: URL_TEXT, headers: { a: Array.from({ length: 900_000 }, () => 'v') } }]),
  );
  yield batch('99 MiB of random bytes', randomBytes(99 * MIB));
  yield { ...batch('1,000 runs', bodies(1_000, 'x')), target: '/v2/batch/trigger' };
}

export function* heavyBodies(): Generator<HeavyRequest> {
  const target = `/v2/publish/${URL_TEXT}`;
  const publish = (name: string, more: Partial<HeavyRequest>): HeavyRequest => ({
    name: `publish: ${name}`,
    method: 'POST',
    target,
    headers: LATER,
    ...more,
  });
  const body = randomBytes(10 * MIB);
  yield publish('10 MiB', { body });
  yield publish('10 MiB, chunked', { body, isChunked: true });
  yield publish('10 MiB, content-based deduplication', {
    body,
    headers: { ...LATER, 'Upstash-Content-Based-Deduplication': 'true' },
  });
  yield publish('10 MiB to a closed port', { body, headers: {} });
  const run = {
    'Upstash-Workflow-Init': 'true',
    'Upstash-Workflow-RunId': 'wfr_heavy',
    'Upstash-Workflow-Url': URL_TEXT,
    ...LATER,
  };
  yield publish('a run with 10 MiB', { body, headers: run });
  const step = { ...run, 'Upstash-Workflow-Init': 'false', 'Upstash-Forward-Upstash-Workflow-Sdk-Version': '1' };
  yield publish('a step of 10 MiB', {
    body: JSON.stringify({ stepId: 1, stepName: 's', stepType: 'Run', out: fill('x', 9 * MIB), concurrent: 1 }),
    headers: step,
  });
  yield publish('an invocation of 10 MiB', {
    body: JSON.stringify({
      body: fill('x', 9 * MIB),
      headers: {},
      workflowRunId: 'wfr_heavy',
      workflowUrl: URL_TEXT,
      step: { stepId: 2, stepName: 's', stepType: 'Invoke' },
    }),
    headers: { ...run, 'Upstash-Workflow-RunId': 'wfr_child', 'Upstash-Workflow-Invoke': 'true' },
  });
  yield publish('an invocation of 10 MiB of escapes', {
    body: JSON.stringify({
      body: fill('\n', 4.5 * MIB),
      headers: {},
      workflowRunId: 'wfr_heavy',
      workflowUrl: URL_TEXT,
      step: { stepId: 2, stepName: 's', stepType: 'Invoke' },
    }),
    headers: { ...run, 'Upstash-Workflow-RunId': 'wfr_child', 'Upstash-Workflow-Invoke': 'true' },
  });
  const wait = (more: object) =>
    JSON.stringify({
      url: URL_TEXT,
      timeout: '1h',
      timeoutUrl: URL_TEXT,
      step: { stepId: 3, stepName: 'w', stepType: 'Wait' },
      ...more,
    });
  yield {
    name: 'wait: a body of 10 MiB',
    method: 'POST',
    target: '/v2/wait/e',
    headers: { ...step, 'Upstash-Workflow-CallType': 'step' },
    body: wait({ timeoutBody: Buffer.alloc(7 * MIB).toString('base64') }),
  };
  yield {
    name: 'wait: a step of 10 MiB',
    method: 'POST',
    target: '/v2/wait/e',
    headers: { ...step, 'Upstash-Workflow-CallType': 'step' },
    body: wait({ step: { stepId: 3, stepName: fill('x', 9.9 * MIB), stepType: 'Wait' } }),
  };
  yield { name: 'notify: 10 MiB', method: 'POST', target: '/v2/notify/e', body };
  yield { name: 'notify: 10 MiB for a run', method: 'POST', target: '/v2/notify/wfr_heavy/e2', body };
  yield { name: 'webhook: 10 MiB', method: 'POST', target: '/v2/workflows/hooks/defaultUser/wfr_heavy/h', body };
}

const JSON_BYTES = 256 * 1024;

export function* heavyJson(): Generator<HeavyRequest> {
  const texts: [string, string][] = [
    ['nested arrays', `${fill('[', JSON_BYTES / 2)}${fill(']', JSON_BYTES / 2)}`],
    ['nested objects', `${fill('{"a":', JSON_BYTES / 6)}1${fill('}', JSON_BYTES / 6 - 10)}`],
    ['different members', JSON.stringify(manyHeaders(20_000, 'm'))],
    ['a repeated member', `{${fill('"a":1,', JSON_BYTES - 10)}"a":1}`],
    [
      'many ids',
      JSON.stringify({
        messageIds: Array.from({ length: 40_000 }, (_, nth) => `${nth}`),
        dlqIds: Array.from({ length: 10_000 }, (_, nth) => `${nth}`),
      }),
    ],
    ['many DLQ ids', JSON.stringify({ dlqIds: Array.from({ length: 30_000 }, (_, nth) => `${nth}`) })],
    ['many labels', JSON.stringify({ label: Array.from({ length: 20_000 }, (_, nth) => `l${nth}`) })],
    [
      'many endpoints',
      JSON.stringify({ endpoints: Array.from({ length: 9_000 }, (_, nth) => ({ url: `${URL_TEXT}${nth}` })) }),
    ],
    [
      '100 endpoints',
      JSON.stringify({ endpoints: Array.from({ length: 100 }, (_, nth) => ({ url: `${URL_TEXT}${nth}` })) }),
    ],
    ['many headers', JSON.stringify({ headers: manyHeaders(9_000, 'Upstash-Forward-') })],
  ];
  const targets = [
    ['DELETE', '/v2/messages'],
    ['DELETE', '/v2/dlq'],
    ['POST', '/v2/dlq/retry'],
    ['POST', '/v2/topics/g/endpoints'],
    ['PATCH', '/v2/topics/g'],
    ['DELETE', '/v2/topics/h/endpoints'],
    ['POST', '/v2/queues'],
    ['DELETE', '/v2/workflows/runs'],
    ['POST', '/v2/workflows/dlq/restart'],
    ['DELETE', '/v2/workflows/dlq'],
  ];
  for (const [method = '', target = ''] of targets) {
    for (const [name, body] of texts) yield { name: `${method} ${target}: ${name}`, method, target, body };
  }
  yield {
    name: 'publish: to a group of 100',
    method: 'POST',
    target: '/v2/publish/g',
    headers: LATER,
    body: fill('x', MIB),
  };
  yield {
    name: 'batch: 100 items to a group of 100',
    method: 'POST',
    target: '/v2/batch',
    body: JSON.stringify(
      Array.from({ length: 100 }, () => ({
        destination: 'g',
        headers: { ...LATER, ...manyHeaders(90, 'Upstash-Forward-') },
        body: fill('x', 1000),
      })),
    ),
  };
}

const TARGET_BYTES = 63 * 1024;

export function* heavyHeads(): Generator<HeavyRequest> {
  const queries: [string, string][] = [
    ['labels', `label=${fill('a,', TARGET_BYTES)}b`],
    ['repeated', fill('label=a&', TARGET_BYTES)],
    ['ids', `messageIds=${Array.from({ length: 10_000 }, (_, nth) => nth).join(',')}`],
    ['DLQ ids', `dlqIds=${Array.from({ length: 10_000 }, (_, nth) => nth).join(',')}`],
    ['names', Array.from({ length: 9_000 }, (_, nth) => `n${nth}=`).join('&')],
    ['escapes', `label=${fill('%61', TARGET_BYTES)}`],
    ['escaped names', fill('%6Cabel=a&', TARGET_BYTES)],
    [
      'every filter',
      `${fill('a=&', TARGET_BYTES - 600)}label=a&url=b&messageId=c&state=CREATED&host=d&callerIp=e&fromDate=1&toDate=2&queueName=f&flowControlKey=g&count=1&workflowRunId=a&workflowUrl=b&cursor=1-1&order=earliestFirst&topicName=a&scheduleId=b&responseStatus=1&trimBody=0&messageIds=a&source=a`,
    ],
    ['ampersands', fill('&', TARGET_BYTES)],
    ['tokens', fill('qstash_toke%6E=a&', TARGET_BYTES)],
    ['options', fill('upstash-label=a&', TARGET_BYTES)],
    ['different options', Array.from({ length: 3_000 }, (_, nth) => `upstash-forward-n${nth}=`).join('&')],
  ];
  const lists = [
    '/v2/logs',
    '/v2/dlq',
    '/v2/workflows/logs',
    '/v2/workflows/messageLogs',
    '/v2/workflows/dlq',
    '/v2/flowControl',
    '/v2/schedules',
    '/v2/messages',
  ];
  for (const target of lists) {
    for (const [name, query] of queries)
      yield { name: `GET ${target}: ${name}`, method: 'GET', target: `${target}?${query}` };
  }
  for (const [name, query] of queries) {
    yield { name: `DELETE /v2/messages: ${name}`, method: 'DELETE', target: `/v2/messages?count=1&${query}` };
    yield {
      name: `publish: query of ${name}`,
      method: 'POST',
      target: `/v2/publish/${URL_TEXT}?${query}`,
      headers: LATER,
    };
  }
  yield { name: 'GET: slashes', method: 'GET', target: fill('/', TARGET_BYTES) };
  yield { name: 'GET: segments', method: 'GET', target: `/v2${fill('/a', TARGET_BYTES)}` };
  const BYTES = 60 * 1024;
  const values: [string, string][] = [
    ['Upstash-Label', fill('a,', BYTES)],
    ['Upstash-Label', Array.from({ length: 10_000 }, (_, nth) => nth).join(',')],
    ['Upstash-Redact-Fields', fill('header[a],', BYTES)],
    ['Upstash-Redact-Fields', `${fill('body,', BYTES)}body`],
    ['Upstash-Flow-Control-Value', fill('parallelism=1,', BYTES)],
    ['Upstash-Flow-Control-Value', fill(' ', BYTES)],
    ['Upstash-Cron', `${fill('1,', BYTES)}1 * * * *`],
    ['Upstash-Cron', '0 0 30 2 *'],
    ['Upstash-Cron', '0 0 29 2 MON#5'],
    ['Upstash-Cron', `${fill('* ', BYTES)}`],
    ['Upstash-Retry-Delay', fill('(', BYTES)],
    ['Upstash-Retry-Delay', `${fill('(', BYTES / 2)}1${fill(')', BYTES / 2 - 1)}`],
    ['Upstash-Retry-Delay', `${fill('1+', BYTES)}1`],
    ['Upstash-Retry-Delay', `${fill('pow(', BYTES / 2)}1`],
    ['Upstash-Delay', fill('1s', BYTES)],
    ['Upstash-Delay', fill('1', BYTES)],
    ['Upstash-Timeout', fill('1d', BYTES)],
    ['Upstash-Retries', fill('9', BYTES)],
    ['Upstash-Not-Before', fill('9', BYTES)],
    ['Upstash-Callback', `http://h/${fill('a', BYTES)}`],
    ['Upstash-Callback', `http://${fill('a.', BYTES)}`],
    ['Upstash-Deduplication-Id', fill('a', BYTES)],
    ['Upstash-Feature-Set', fill('a,', BYTES)],
    ['Connection', fill('a,', BYTES)],
    ['Cookie', fill('a=b; ', BYTES)],
    ['Authorization', `Bearer ${fill(' ', BYTES)}`],
    ['Authorization', `Bearer ${fill('a', BYTES)}`],
    ['X-Forwarded-For', fill('1.1.1.1,', BYTES)],
    ['Upstash-Forward-Cookie', fill('a=b; ', BYTES)],
    ['Upstash-Schedule-Id', fill('a', BYTES)],
    ['Upstash-Method', fill('P', BYTES)],
    ['Content-Type', fill(';', BYTES)],
    [`Upstash-${fill('Callback-', BYTES)}Retries`, '1'],
    [`Upstash-${fill('-', BYTES)}`, '1'],
    [`Upstash-Forward-${fill('a-', BYTES)}`, '1'],
  ];
  for (const [name, value] of values) {
    yield {
      name: `publish: ${name.slice(0, 30)}: ${value.slice(0, 12)}`,
      method: 'POST',
      target: `/v2/publish/${URL_TEXT}`,
      headers: { ...LATER, 'Upstash-Header-Forward': 'true', [name]: value },
    };
  }
  const many: [string, Record<string, string>][] = [
    ['to forward', lines(990, 'Upstash-Forward-')],
    ['unknown', lines(990, 'X-')],
    ['options', lines(990, 'Upstash-')],
    ['of callbacks', lines(990, 'Upstash-Callback-Failure-Callback-Callback-Forward-')],
  ];
  for (const [name, headers] of many) {
    yield {
      name: `publish: 990 headers ${name}`,
      method: 'POST',
      target: `/v2/publish/${URL_TEXT}`,
      headers: { ...LATER, 'Upstash-Header-Forward': 'true', ...headers },
    };
  }
}

export const AUTHORIZATION = `Bearer ${DEVELOPMENT_TOKEN}`;
