import { Receiver } from '@upstash/qstash';
import { describe, expect, it } from 'vitest';
import { requestHead } from '../../src/delivery/request-head.ts';
import type {
  CallType,
  FlowControl,
  HeaderMap,
  MessageSettings,
  RunSettings,
} from '../../src/protocol/options/settings.ts';
import { headerMap } from '../protocol/refusal.ts';
import { claimOf, openDelivery, SIGNING_KEY, startEndpoint, untouched } from './support.ts';

const RUN: RunSettings = {
  key: 7,
  id: 'wfr_x',
  createdAtMs: 1_700_000_000_123,
  url: 'https://app.example/wf?x=1',
  callType: 'step',
  features: [],
};

interface Sent {
  header?: HeaderMap;
  settings?: Partial<MessageSettings>;
  retried?: number;
}

/** The head of a message of the run, without what every message has. */
function headOf(run: Partial<RunSettings>, { header = {}, settings, retried = 0 }: Sent = {}): Record<string, string> {
  const message = { header, settings: { run: { ...RUN, ...run }, ...settings } };
  const claimed = { ...claimOf('https://app.example/wf', message), retried };
  const head = requestHead({ claimed, signature: 's' });
  const names = head.filter((_, at) => at % 2 === 0);
  expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(names.length);
  const lines = names.map((name, at) => [name, head[2 * at + 1] ?? ''] as const);
  return Object.fromEntries(lines.filter(([name]) => !OF_EVERY_DELIVERY.has(name.replace('Waypost', 'Upstash'))));
}

const OF_EVERY_DELIVERY = new Set([
  'User-Agent',
  'Upstash-Signature',
  'Upstash-Message-Id',
  'Upstash-Retried',
  'Accept-Encoding',
]);

const ofRun = (callType: CallType, init = 'false') => ({
  'Upstash-Workflow-Runid': 'wfr_x',
  'Upstash-Workflow-Url': 'https://app.example/wf?x=1',
  'Upstash-Workflow-Init': init,
  'Upstash-Workflow-Createdat': '1700000000123',
  'Upstash-Workflow-Calltype': callType,
  'Upstash-Retries': '0',
  'Upstash-Max-Retries': '3',
});

const VERSION = headerMap({ 'Upstash-Workflow-Sdk-Version': ['1'] });

describe('the head of a message of a workflow run (contract W 9.2)', () => {
  it('marks the first message', () => {
    expect(headOf({ init: 'known' }, { header: VERSION })).toEqual({
      ...ofRun('step', 'true'),
      'Upstash-Workflow-Sdk-Version': '1',
    });
  });

  it('does not mark a later message', () => {
    expect(headOf({}, { header: VERSION })).toEqual({ ...ofRun('step'), 'Upstash-Workflow-Sdk-Version': '1' });
  });

  it('is in the dialect of the message, and forwarded names stay unchanged', () => {
    const head = headOf({ init: 'known' }, { header: VERSION, settings: { dialect: 'waypost', labels: ['a'] } });
    expect(head).toEqual({
      ...Object.fromEntries(
        Object.entries(ofRun('step', 'true')).map(([name, value]) => [name.replace('Upstash', 'Waypost'), value]),
      ),
      'Waypost-Label': 'a',
      'Upstash-Workflow-Sdk-Version': '1',
    });
  });

  it('has no protocol version on the result of a call, nor while the library is being detected', () => {
    for (const header of [VERSION, headerMap({ 'Waypost-Workflow-Sdk-Version': ['1'] })]) {
      expect(headOf({ callType: 'fromCallback' }, { header })).toEqual(ofRun('fromCallback'));
      expect(headOf({ init: 'unknown' }, { header })).toEqual({
        ...ofRun('step', 'true'),
        'Upstash-Workflow-Unknown-Sdk': 'true',
      });
    }
  });

  it('has it on a failure callback only when its options forward it', () => {
    expect(headOf({ callType: 'failureCall' })).toEqual(ofRun('failureCall'));
    expect(headOf({ callType: 'failureCall' }, { header: VERSION })).toEqual({
      ...ofRun('failureCall'),
      'Upstash-Workflow-Sdk-Version': '1',
    });
  });

  it('shows a called endpoint only forwarded headers', () => {
    const header = headerMap({
      'Upstash-Workflow-Invoke-Count': ['2'],
      'Upstash-Workflow-Is-Failure': ['true'],
      'X-Own': ['v'],
    });
    expect(headOf({ callType: 'toCallback' }, { header, settings: { labels: ['a'] } })).toEqual({
      'Upstash-Workflow-Invoke-Count': '2',
      'Upstash-Workflow-Is-Failure': 'true',
      'X-Own': 'v',
    });
  });

  it('has all labels in one line, once, whatever was forwarded', () => {
    const header = headerMap({ 'Upstash-Label': ['a'] });
    expect(headOf({}, { header, settings: { labels: ['a', 'b'] } })).toEqual({
      ...ofRun('step'),
      'Upstash-Label': 'a,b',
    });
  });

  it('replaces forwarded headers of the same names', () => {
    const header = headerMap({
      'Upstash-Workflow-Runid': ['wfr_old'],
      'Upstash-Workflow-Url': ['https://old.example/'],
      'Upstash-Workflow-Init': ['true'],
      'Upstash-Workflow-Createdat': ['1'],
      'Upstash-Workflow-Calltype': ['toCallback'],
      'Upstash-Message-Id': ['old'],
    });
    expect(headOf({}, { header })).toEqual(ofRun('step'));
  });

  it('has the maximum number of retries, and the number so far', () => {
    const settings = { maxRetries: 5, retryDelayExpression: '1000 * (1 + retried)' };
    expect(headOf({}, { settings, retried: 2 })).toEqual({
      ...ofRun('step'),
      'Upstash-Retries': '2',
      'Upstash-Max-Retries': '5',
      'Upstash-Retry-Delay': '1000 * (1 + retried)',
    });
  });

  it('has a zero for a message without retries', () => {
    expect(headOf({}, { settings: { maxRetries: 0 } })['Upstash-Max-Retries']).toBe('0');
  });

  it.each<[string, Partial<FlowControl>]>([
    ['parallelism=3,period=1', { parallelism: 3 }],
    ['rate=7,period=60', { rate: 7, periodS: 60 }],
    ['parallelism=3,rate=7,period=1', { parallelism: 3, rate: 7 }],
  ])('says the limits of its flow-control key: %s', (value, limits) => {
    const flowControl = { key: 'crm', periodS: 1, ...limits };
    expect(headOf({}, { settings: { flowControl } })).toEqual({
      ...ofRun('step'),
      'Upstash-Flow-Control-Key': 'crm',
      'Upstash-Flow-Control-Value': value,
    });
  });

  it('is marked if it was published with any setting for a step', () => {
    for (const stepSettings of [{}, { maxRetries: 1 }]) {
      expect(headOf({ stepSettings })).toEqual({ ...ofRun('step'), 'Upstash-Workflow-Step-Config': 'true' });
    }
  });

  it('shows a called endpoint no limits', () => {
    const flowControl = { key: 'crm', parallelism: 1, periodS: 1 };
    expect(headOf({ callType: 'toCallback' }, { settings: { flowControl, retryDelayExpression: '1' } })).toEqual({});
  });

  it('writes a URL with letters beyond Latin-1 as UTF-8', () => {
    const { 'Upstash-Workflow-Url': url = '' } = headOf({ url: 'https://app.example/水' });
    expect(Buffer.from(url, 'latin1').toString('utf8')).toBe('https://app.example/水');
  });
});

describe('a delivery', () => {
  it('sends the journal instead of the message, and signs it', async () => {
    const endpoint = await startEndpoint();
    for (const deliveredBody of [Buffer.from('[{"messageId":"m"}]'), new Uint8Array(0)]) {
      const claimed = { ...claimOf(`${endpoint.origin}/wf`, { body: Buffer.from('{"stepId":1}') }), deliveredBody };
      await openDelivery().attempt(claimed, untouched());
      const received = endpoint.received.at(-1);
      expect(received?.body).toEqual(Buffer.from(deliveredBody));
      const receiver = new Receiver({ currentSigningKey: SIGNING_KEY, nextSigningKey: 'unused' });
      const signature = String(received?.headers['upstash-signature']);
      await receiver.verify({ signature, body: String(received?.body), url: `${endpoint.origin}/wf` });
    }
  });

  it.each<[string, Partial<RunSettings>, string]>([
    ['of a failure callback', { callType: 'failureCall' }, 'ok'],
    ['of a first message that the library is asked to mark', { init: 'known', features: ['WF_DetectTrigger'] }, 'ok'],
    ['of a first message that was triggered over REST', { init: 'known', isRest: true }, 'ok'],
    ['of a first message of an old library', { init: 'known' }, ''],
    ['of a step', { features: ['WF_DetectTrigger'] }, ''],
  ])('keeps what a success %s says only if somebody wants to know it', async (_, run, kept) => {
    const endpoint = await startEndpoint();
    const outcome = await openDelivery().attempt(
      claimOf(endpoint.origin, { settings: { run: { ...RUN, ...run } } }),
      untouched(),
    );
    expect(outcome.kind === 'responded' && Buffer.from(outcome.body).toString()).toBe(kept);
  });
});
