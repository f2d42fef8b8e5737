/** `waypost publish`, `enqueue`, `trigger`, `notify` and `schedules create`: send a message to the server. */
import { CommandFailed, EXIT } from '../command.ts';
import { BODY_OPTIONS, bodyOf } from '../http/body.ts';
import { checkHeader } from '../http/server.ts';
import { type Call, commandOf, show, type Verb } from '../http/verb.ts';

export const MESSAGE = {
  ...BODY_OPTIONS,
  '-H, --header <name:value>':
    'A header to deliver; repeatable. Headers that begin with Upstash- or Waypost- are options of the message.',
} as const;

export const publish = commandOf('publish', {
  '': {
    words: '<destination>',
    meaning:
      'Publishes a message to a URL or a URL group, and prints its id. A body that is JSON is sent as application/json, unless a header says otherwise.',
    headersOf: 'publish',
    options: MESSAGE,
    example: `publish https://example.com/orders --body '{"order":42}' -H "X-Shop: eu" --delay 10s`,
    run: (call) => send(call, 'publish'),
  },
});

export const enqueue = commandOf('enqueue', {
  '': {
    words: '<queue> <destination>',
    meaning: 'Publishes a message through a queue, and prints its id.',
    headersOf: 'enqueue',
    options: MESSAGE,
    example: `enqueue invoices https://example.com/invoices --body '{"order":42}'`,
    run: (call) => send(call, 'enqueue'),
  },
});

export const trigger = commandOf('trigger', {
  '': {
    words: '<workflow url>',
    meaning: 'Starts a run of the workflow at this URL, and prints its id.',
    headersOf: 'triggerWorkflow',
    options: MESSAGE,
    example: `trigger https://example.com/api/onboarding --body '{"user":7}' --workflow-run-id user-7`,
    run: (call) => send(call, 'triggerWorkflow'),
  },
});

const notifyVerb: Verb = {
  words: '<event id>',
  meaning:
    'Notifies the workflow runs that wait for an event, and prints their ids. The body is the data of the event.',
  options: {
    ...BODY_OPTIONS,
    '--run <run id>': 'Notify only this run; the event is saved if the run does not wait for it yet.',
  },
  example: `notify order-42-paid --body '{"paid":true}'`,
  async run(call) {
    const body = await bodyOf(call);
    const run = call.values('run').at(-1);
    const notified = await call.server.ask<{ workflowRunId: string } | { workflowRunId: string }[]>(
      run === undefined ? 'notifyEvent' : 'notifyWorkflowRun',
      { words: run === undefined ? call.words : [run, ...call.words], ...(body !== undefined && { body }) },
    );
    const waiters = [notified].flat();
    return show(call, notified, waiters.length === 0 ? 'No run waits for this event.' : linesOf(waiters));
  },
};

export const notify = commandOf('notify', { '': notifyVerb });

export const createSchedule: Verb = {
  words: '<destination>',
  meaning: 'Publishes to a URL or a URL group at the times of --cron, and prints the id of the schedule.',
  headersOf: 'createSchedule',
  options: MESSAGE,
  example: `schedules create https://example.com/report --cron "CRON_TZ=Europe/Berlin 0 7 * * *" --schedule-id nightly`,
  async run(call) {
    const headers = headersOf(call);
    if (!headers.some(([name]) => /^(upstash|waypost)-cron$/i.test(name)))
      throw new CommandFailed('schedules create: --cron <expression> is missing', EXIT.usage);
    return send(call, 'createSchedule', headers);
  },
};

/** Options of the message, and headers to deliver. */
export function headersOf(call: Call): [string, string][] {
  return [...call.headers, ...call.values('header').concat(call.values('H')).map(headerOf)];
}

async function send(call: Call, operationId: string, headers = headersOf(call)): Promise<number> {
  const body = await bodyOf(call);
  if (!headers.some(([name]) => name.toLowerCase() === 'content-type') && body !== undefined) {
    headers.push(['content-type', isJson(body) ? 'application/json' : 'text/plain; charset=utf-8']);
  }
  const response = await call.server.ask<object | object[]>(operationId, {
    words: call.words,
    headers,
    ...(body !== undefined && { body }),
  });
  return show(call, response, linesOf([response].flat()));
}

/** Parses `name:value`. As in the official clients, a header that is not an option of the message is delivered. */
function headerOf(text: string): [string, string] {
  const at = text.indexOf(':');
  const name = text.slice(0, at).trim();
  if (at < 1 || !/^[\w!#$%&'*+.^`|~-]+$/.test(name))
    throw new CommandFailed(`--header: must be name:value, not ${JSON.stringify(text)}`, EXIT.usage);
  checkHeader('--header', text);
  const isOurs = /^(upstash-|waypost-|content-type$)/i.test(name);
  return [isOurs ? name : `Upstash-Forward-${name}`, text.slice(at + 1).trim()];
}

function isJson(body: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder().decode(body));
    return true;
  } catch {
    return false;
  }
}

/** One line for each response: the id in the response, or the reason of the refusal. */
export function linesOf(responses: readonly object[]): string {
  const lines = (responses.flat() as Record<string, unknown>[]).map(
    ({ messageId, workflowRunId, scheduleId, error }) =>
      messageId ?? workflowRunId ?? scheduleId ?? `refused: ${error}`,
  );
  return lines.join('\n');
}
