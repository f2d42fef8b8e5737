/** Fills a server with examples of everything that the console shows. */
import { eventually } from '../../support/eventually.ts';
import { HOSTILE, HOSTILE_HEADER, KNOWN_NAME, LONG_NAME, LONG_QUERY } from './hostile.ts';

interface Targets {
  /** URL of the server, without a trailing slash. */
  url: string;
  token: string;
  /** URL of `App`. */
  app: string;
}

/** The ids of messages and runs that have a screen of their own. */
export interface PopulatedIds {
  delivered: string;
  failed: string;
  waiting: string;
  run: string;
  failedRun: string;
}

interface Overview {
  dlq: Record<'messages' | 'workflowRuns', { count: number }>;
}

type Ask = <T>(method: string, target: string, headers?: Record<string, string>, body?: string) => Promise<T>;

/** Returns a function that sends requests with the token. It rejects for an error response. */
export function askerOf({ url, token }: Pick<Targets, 'url' | 'token'>): Ask {
  return async (method, target, headers = {}, body) => {
    const response = await fetch(`${url}${target}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'Content-Type': 'application/json', ...headers },
      ...(body !== undefined && { body }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${target}: ${response.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  };
}

export async function populate({ url, token, app }: Targets): Promise<PopulatedIds> {
  const ask = askerOf({ url, token });
  const publish = async (path: string, headers: Record<string, string> = {}, body = '{"number":1}') =>
    (await ask<{ messageId: string }>('POST', `/v2/publish/${app}${path}`, headers, body)).messageId;
  const labels = `orders, ${KNOWN_NAME}, ${LONG_NAME}`;
  const trigger = async (name: string, body: unknown) => {
    const target = `/v2/trigger/${app}/flows/${name}`;
    const labelled = { 'Upstash-Label': labels };
    return (await ask<{ workflowRunId: string }>('POST', target, labelled, JSON.stringify(body))).workflowRunId;
  };
  const limitedBy = (key: string) => ({
    'Upstash-Flow-Control-Key': key,
    'Upstash-Flow-Control-Value': 'parallelism=1',
  });

  const run = await trigger('order', { said: HOSTILE });
  await trigger('invoice', {});
  const failedRun = await trigger('refund', { order: 42 });
  const odd = { 'Upstash-Label': labels, 'Upstash-Forward-X-Odd': HOSTILE_HEADER };
  const delivered = await publish('/ok', odd, JSON.stringify({ text: HOSTILE }));
  await publish(`/ok${LONG_QUERY}`, {}, HOSTILE);
  const failed = await publish('/broken', { 'Upstash-Retries': '0', ...odd }, JSON.stringify({ text: HOSTILE }));
  await publish('/broken', { 'Upstash-Retries': '3', 'Upstash-Retry-Delay': '3600000' });
  const waiting = await publish('/ok', {
    ...limitedBy(LONG_NAME),
    'Upstash-Delay': '1h',
    'Upstash-Redact-Fields': 'body',
    'Upstash-Callback': `${app}/ok${LONG_QUERY}`,
    'Upstash-Failure-Callback': `${app}/ok`,
    'Upstash-Failure-Callback-Forward-X-Odd': HOSTILE_HEADER,
  });
  for (const key of ['crm', KNOWN_NAME, LONG_NAME]) {
    await publish('/slow', limitedBy(key));
    await publish('/slow', limitedBy(key));
  }
  await ask('POST', '/v2/queues', {}, JSON.stringify({ queueName: 'invoices', parallelism: 2 }));
  await ask('POST', '/v2/queues/invoices/pause');
  for (const queue of ['invoices', KNOWN_NAME, LONG_NAME]) {
    await ask('POST', `/v2/enqueue/${queue}/${app}/slow${LONG_QUERY}`, {}, 'waits');
  }
  for (const id of ['morning-report', KNOWN_NAME, LONG_NAME]) {
    const weekly = { 'Upstash-Cron': 'CRON_TZ=Europe/Berlin 30 7 * * MON-FRI', 'Upstash-Schedule-Id': id };
    const target = id === LONG_NAME ? `${app}/ok${LONG_QUERY}` : `${app}/ok`;
    await ask('POST', `/v2/schedules/${target}`, { ...weekly, ...odd }, JSON.stringify({ text: HOSTILE }));
  }
  const endpoints = [{ url: `${app}/ok`, name: HOSTILE }, { url: `${app}/broken` }];
  const odder = [{ url: `${app}/ok${LONG_QUERY}`, name: HOSTILE }];
  await ask('POST', '/v2/topics/subscribers/endpoints', {}, JSON.stringify({ endpoints }));
  await ask('POST', `/v2/topics/${KNOWN_NAME}/endpoints`, {}, JSON.stringify({ endpoints: odder }));
  await ask('POST', `/v2/topics/${LONG_NAME}/endpoints`, {}, JSON.stringify({ endpoints: odder }));
  await ask('POST', '/v2/publish/subscribers', { 'Upstash-Retries': '0' }, 'to all');

  await eventually('two messages and a run in the DLQ', async () => {
    const { dlq } = await ask<Overview>('GET', '/v2/waypost/overview');
    return dlq.messages.count === 2 && dlq.workflowRuns.count === 1;
  });
  await eventually('a run that sleeps', async () =>
    JSON.stringify(await ask('GET', `/v2/workflows/logs?workflowRunId=${run}`)).includes('give time to reconsider'),
  );
  await eventually('a run that waits for two events', async () => {
    return (await ask<{ waiters: unknown[] }>('GET', '/v2/waypost/waiters')).waiters.length === 2;
  });
  return { delivered, failed, waiting, run, failedRun };
}
