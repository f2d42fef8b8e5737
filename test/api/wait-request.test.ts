import { describe, expect, it } from 'vitest';
import { readWait } from '../../src/api/runs/wait-request.ts';
import type { WaitCommand } from '../../src/engine/runs/stores.ts';
import { refusalOf } from '../protocol/refusal.ts';

const DAY_MS = 86_400_000;
const QUOTAS = { retriesDefault: 3, retriesMax: 10, delayMsMax: 30 * DAY_MS, timeoutMsMax: 0 };
const URL_OF_RUN = 'https://app.example/wf';

/** As version 1.3 of the client library sends them with a wait. */
const HEADERS = {
  'Upstash-Workflow-Init': 'false',
  'Upstash-Workflow-RunId': 'wfr_x',
  'Upstash-Workflow-Url': URL_OF_RUN,
  'Upstash-Feature-Set': 'LazyFetch,InitialBody',
  'Upstash-Workflow-Sdk-Version': '1',
  'content-type': 'application/json',
  'Upstash-Forward-Upstash-Workflow-Sdk-Version': '1',
  'Upstash-Forward-X-User': 'u',
  'Upstash-Retries': '2',
  'Upstash-Telemetry-Sdk': 'x',
  'Upstash-Workflow-CallType': 'step',
  Authorization: 'Bearer secret',
  Host: 'server',
};

const STEP = { stepId: 6, stepType: 'Wait', stepName: 'w', concurrent: 1 };

const BODY = {
  url: URL_OF_RUN,
  timeout: '20s',
  timeoutUrl: 'https://app.example/late',
  timeoutHeaders: {
    'Upstash-Workflow-Init': ['false'],
    'Upstash-Workflow-RunId': ['wfr_x'],
    'Upstash-Workflow-Runid': ['wfr_x'],
    'Upstash-Workflow-Url': [URL_OF_RUN],
    'Upstash-Forward-X-Late': ['l'],
    'content-type': ['text/plain'],
    'Upstash-Workflow-CallType': ['step'],
  },
  step: STEP,
};

function read(body: unknown = BODY, headers: Record<string, string> = HEADERS): WaitCommand {
  const input = { rawHeaders: Object.entries(headers).flat(), queryConfig: [], tokenInQuery: false, proxyHeaders: [] };
  return readWait('event-1', input, body, { quotas: QUOTAS, nowMs: 0 });
}

function without<T extends object>(object: T, ...names: (keyof T)[]): Partial<T> {
  const copy: Partial<T> = { ...object };
  for (const name of names) delete copy[name];
  return copy;
}

describe('a wait request (contract W 14.6)', () => {
  it('names its run, its event and its step, whose members stay as they are', () => {
    const wait = read({ ...BODY, step: { ...STEP, targetStep: 6, extra: [null] } });
    expect(wait).toMatchObject({ runId: 'wfr_x', eventId: 'event-1', timeout: '20s', timeoutMs: 20_000, stepId: 6 });
    expect(wait.features).toEqual(['LazyFetch', 'InitialBody']);
    expect(Buffer.from(wait.step).toString()).toBe(JSON.stringify({ ...STEP, targetStep: 6, extra: [null] }));
  });

  it('is told of the event with its own headers, and of the time-out with the others', () => {
    const { notified, timedOut } = read();
    expect(notified.url).toBe(URL_OF_RUN);
    expect({ ...notified.header }).toEqual({
      'Content-Type': ['application/json'],
      'Upstash-Workflow-Sdk-Version': ['1'],
      'X-User': ['u'],
    });
    expect(notified.settings.maxRetries).toBe(2);
    expect(timedOut.url).toBe('https://app.example/late');
    expect({ ...timedOut.header }).toEqual({ 'Content-Type': ['text/plain'], 'X-Late': ['l'] });
    expect(timedOut.settings.maxRetries).toBe(3);
  });

  it('is told of the time-out as of the event when nothing else is said', () => {
    const { notified, timedOut } = read(without(BODY, 'timeoutUrl', 'timeoutHeaders'));
    expect(timedOut.url).toBe(notified.url);
    expect({ ...timedOut.header }).toEqual({ ...notified.header });
  });

  it('shows what configures its messages, each name once, and nothing of the request itself', () => {
    const { headers, timeoutHeaders } = read();
    expect(headers).toMatchObject({
      'Upstash-Workflow-Runid': ['wfr_x'],
      'Upstash-Workflow-Url': [URL_OF_RUN],
      'Upstash-Forward-X-User': ['u'],
      'Content-Type': ['application/json'],
    });
    expect(Object.keys(headers)).not.toContain('Authorization');
    expect(Object.keys(headers)).not.toContain('Host');
    expect(Object.keys(headers)).not.toContain('Upstash-Telemetry-Sdk');
    expect(timeoutHeaders['Upstash-Workflow-Runid']).toEqual(['wfr_x']);
    expect(timeoutHeaders['Upstash-Forward-X-Late']).toEqual(['l']);
  });

  it('speaks the dialect of its request everywhere', () => {
    const inOurs = Object.fromEntries(
      Object.entries(HEADERS).map(([name, value]) => [name.replace(/^Upstash-/, 'Waypost-'), value]),
    );
    const { notified, timedOut, headers, timeoutHeaders } = read(BODY, inOurs);
    expect([notified.settings.dialect, timedOut.settings.dialect]).toEqual(['waypost', 'waypost']);
    expect(headers['Waypost-Workflow-Runid']).toEqual(['wfr_x']);
    expect(timeoutHeaders['Waypost-Forward-X-Late']).toEqual(['l']);
  });

  it.each([
    [undefined, '7d', 7 * DAY_MS],
    ['', '7d', 7 * DAY_MS],
    [90, '90s', 90_000],
    ['1d12h', '1d12h', 1.5 * DAY_MS],
    ['0s', '0s', 0],
  ])('waits for %j', (given, timeout, timeoutMs) => {
    expect(read({ ...BODY, timeout: given })).toMatchObject({ timeout, timeoutMs });
  });

  it('says which incarnation of its run it belongs to, where it knows', () => {
    expect(read(BODY, { ...HEADERS, 'Upstash-Workflow-CreatedAt': '1700000000000' }).createdAtMs).toBe(
      1_700_000_000_000,
    );
    expect(read()).not.toHaveProperty('createdAtMs');
  });

  it.each([
    ['no object', [], /object/],
    ['no step', without(BODY, 'step'), /step must be an object/],
    ['a step without an id', { ...BODY, step: { stepName: 'w' } }, /step\.stepId/],
    ['a plan', { ...BODY, step: { ...STEP, stepId: 0 } }, /step\.stepId/],
    ['no URL', without(BODY, 'url'), /url is missing/],
    ['a URL of another kind', { ...BODY, url: 7 }, /url must be a string/],
    ['a URL that cannot be called', { ...BODY, url: 'ftp://x' }, /scheme/],
    ['a time-out URL that cannot be called', { ...BODY, timeoutUrl: 'x' }, /scheme/],
    ['a time-out that is none', { ...BODY, timeout: 'soon' }, /timeout must be a duration .* not "soon"/],
    ['a negative time-out', { ...BODY, timeout: -1 }, /timeout must be a duration/],
    ['headers of another shape', { ...BODY, timeoutHeaders: { a: 1 } }, /headers/],
    ['a body that is no base64', { ...BODY, timeoutBody: '{}' }, /timeoutBody/],
  ])('refuses %s', (_name, body, message) => {
    const refusal = refusalOf(() => read(body));
    expect([400, 422]).toContain(refusal.status);
    expect(refusal.message).toMatch(message);
  });

  it('refuses a request that is not of a step of a run', () => {
    expect(refusalOf(() => read(BODY, without(HEADERS, 'Upstash-Workflow-Init') as typeof HEADERS)).message).toMatch(
      /Workflow-Init/,
    );
  });

  it('refuses a wait that is longer than messages may be delayed', () => {
    expect(refusalOf(() => read({ ...BODY, timeout: '31d' }))).toMatchObject({
      status: 412,
      message: 'quota maxDelay exceeded, current limit: 2592000',
    });
  });
});
