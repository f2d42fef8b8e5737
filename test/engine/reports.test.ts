/** The log lines about attempts and runs, for operators and for developers of an app. */
import { describe, expect, it } from 'vitest';
import { decide } from '../../src/engine/messages/decide.ts';
import type { Message, Outcome } from '../../src/engine/model.ts';
import type { EndedRun, EventLog } from '../../src/engine/ports.ts';
import { Reports } from '../../src/engine/reports.ts';
import type { MessageSettings } from '../../src/protocol/options/settings.ts';
import { answered, claimed, message, NOW_MS } from './fixtures.ts';

const REFUSED: Outcome = { kind: 'unreachable', reason: 'refused', error: 'connection refused' };
const URL_WITH_SECRETS = 'https://user:secret@a.example/hooks/secret?token=secret';
const RUN = { key: 1, id: 'wfr_1', createdAtMs: NOW_MS, url: 'https://a.example/wf' } as const;

const ENDED: EndedRun = {
  ...{ projectId: 1, id: 'wfr_1', url: 'https://a.example/wf', createdAtMs: NOW_MS },
  config: {
    ...{ dialect: 'upstash', features: [], header: {}, maxRetries: 3 },
    ...{ isKept: true, isRest: false, isUnknownSdk: false },
  },
};

interface LogLine {
  level: string;
  event: string;
  [field: string]: unknown;
}

function reportsInto(lines: LogLine[], logsAll: boolean): Reports {
  const to =
    (level: string): EventLog['info'] =>
    (event, fields) =>
      lines.push({ level, event, ...fields });
  const log = { debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') };
  return new Reports({ log, logsAll }, { count: () => {}, attempted: () => {} });
}

/** The log lines when `outcome` is settled. */
function told(outcome: Outcome, of: Partial<Message> = {}, { retried = 0, logsAll = false, cancelled = false } = {}) {
  const attempted = claimed({ message: message({ url: URL_WITH_SECRETS, ...of }), retried });
  const decision = decide(attempted, outcome, NOW_MS);
  if (decision.kind !== 'settle') throw new Error(`decided to ${decision.kind}`);
  const { change, changeIfCancelRequested = change } = decision.settlement;
  const lines: LogLine[] = [];
  reportsInto(lines, logsAll).settled(attempted, cancelled ? changeIfCancelRequested : change, NOW_MS);
  return lines;
}

const LAST = { retried: 3 };

describe('a server in production', () => {
  it('warns of a dead message, with the reason, and only with the origin of its URL', () => {
    expect(told(answered(500), {}, LAST)).toEqual([
      {
        level: 'warn',
        event: 'message_buried',
        messageId: 'msg_1',
        origin: 'https://a.example',
        reason: 'the endpoint responded with status 500',
        attempts: 4,
      },
    ]);
  });

  it('names the host of a redirect, without its path', () => {
    const [line] = told(answered(308, { Location: ['https://www.a.example/hooks/secret/?token=secret'] }), {}, LAST);
    expect(line?.['reason']).toBe(
      'the endpoint responded with status 308, a redirect to https://www.a.example; redirects are not followed',
    );
  });

  it('logs an attempt that is followed by another only at the debug level', () => {
    const [line] = told(REFUSED);
    expect(line).toMatchObject({ level: 'debug', event: 'attempt_failed', reason: 'connection refused' });
    expect(JSON.stringify(line)).not.toContain('secret');
  });

  it('calls a cancelled message cancelled, not dead', () => {
    const [line] = told(REFUSED, {}, { cancelled: true });
    expect(line).toMatchObject({ level: 'debug', event: 'attempt_failed', next: 'none, it is cancelled' });
  });

  it('logs nothing of delivered messages and released claims', () => {
    expect(told(answered(200))).toEqual([]);
  });

  it('warns of a parked run, with the time of the next try', () => {
    const settings: MessageSettings = {
      dialect: 'upstash',
      maxRetries: 0,
      run: { ...RUN, features: [], callType: 'step' },
    };
    expect(told(answered(409, { 'Upstash-Workflow-Code-Changed': ['true'] }), { settings })).toEqual([
      {
        level: 'warn',
        event: 'run_parked',
        runId: 'wfr_1',
        messageId: 'msg_1',
        origin: 'https://a.example',
        reason: 'The code of the workflow has changed.',
        next: 'in 60 s',
      },
    ]);
  });

  it('warns of an origin that is held back', () => {
    const lines: LogLine[] = [];
    reportsInto(lines, false).heldBack('https://a.example');
    expect(lines).toEqual([{ level: 'warn', event: 'origin_held_back', origin: 'https://a.example' }]);
  });
});

describe('a development server', () => {
  const LOGS_ALL = { logsAll: true };

  it('warns of each failed attempt, with the URL without secrets, and the time of the next one', () => {
    expect(told(REFUSED, { url: 'http://user:secret@127.0.0.1:3000/hello?token=secret' }, LOGS_ALL)).toEqual([
      {
        level: 'warn',
        event: 'attempt_failed',
        messageId: 'msg_1',
        url: 'http://127.0.0.1:3000/hello',
        reason: 'connection refused',
        attempts: 1,
        next: 'attempt 2 in 12 s',
      },
    ]);
  });

  it('warns of the last one as the end of its message', () => {
    expect(told(REFUSED, {}, { ...LAST, ...LOGS_ALL })).toMatchObject([{ level: 'warn', event: 'message_buried' }]);
  });

  it('logs that a run continues after a dead call', () => {
    const settings: MessageSettings = {
      dialect: 'upstash',
      maxRetries: 0,
      run: { ...RUN, features: [], callType: 'toCallback' },
    };
    expect(told(answered(500), { settings }, LOGS_ALL)).toMatchObject([
      { event: 'attempt_failed', next: 'none, its run continues without it' },
    ]);
  });

  it('logs the end of each run', () => {
    const lines: LogLine[] = [];
    const reports = reportsInto(lines, true);
    reports.runEnded({ ...ENDED, url: 'https://a.example/wf?x=1' }, 'RUN_SUCCESS', NOW_MS);
    reports.runEnded({ ...ENDED, id: 'wfr_2' }, 'RUN_CANCELED', NOW_MS);
    expect(lines).toEqual([
      { level: 'info', event: 'run_succeeded', runId: 'wfr_1', url: 'https://a.example/wf' },
      { level: 'info', event: 'run_canceled', runId: 'wfr_2', url: 'https://a.example/wf' },
    ]);
  });
});
