/** Fills a server with a little of everything that the console shows. */
import { eventually } from '../../support/eventually.ts';
import { HOSTILE } from './hostile.ts';

export interface Places {
  /** The server, without a slash at the end. */
  url: string;
  token: string;
  /** Of `App`. */
  app: string;
}

/** What a screen of its own shows, by id. */
export interface Made {
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

/** Requests to a server with a token. They reject when they are refused. */
export function askerOf({ url, token }: Pick<Places, 'url' | 'token'>): Ask {
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

export async function populate({ url, token, app }: Places): Promise<Made> {
  const ask = askerOf({ url, token });
  const publish = async (path: string, headers: Record<string, string> = {}, body = '{"number":1}') =>
    (await ask<{ messageId: string }>('POST', `/v2/publish/${app}${path}`, headers, body)).messageId;
  const trigger = async (name: string, body: unknown) => {
    const target = `/v2/trigger/${app}/flows/${name}`;
    return (await ask<{ workflowRunId: string }>('POST', target, {}, JSON.stringify(body))).workflowRunId;
  };
  const limited = { 'Upstash-Flow-Control-Key': 'crm', 'Upstash-Flow-Control-Value': 'parallelism=1' };

  const run = await trigger('order', { said: HOSTILE });
  await trigger('invoice', {});
  const failedRun = await trigger('refund', { order: 42 });
  const odd = { 'Upstash-Label': 'orders', 'Upstash-Forward-X-Odd': encodeURIComponent(HOSTILE) };
  const delivered = await publish('/ok', odd, JSON.stringify({ text: HOSTILE }));
  await publish(`/ok?${'long='.repeat(200)}`, {}, HOSTILE);
  const failed = await publish('/broken', { 'Upstash-Retries': '0', ...odd }, JSON.stringify({ text: HOSTILE }));
  await publish('/broken', { 'Upstash-Retries': '3', 'Upstash-Retry-Delay': '3600000' });
  const waiting = await publish('/ok', { 'Upstash-Delay': '1h' });
  await publish('/slow', limited);
  await publish('/slow', limited);
  await ask('POST', '/v2/queues', {}, JSON.stringify({ queueName: 'invoices', parallelism: 2 }));
  await ask('POST', '/v2/queues/invoices/pause');
  await ask('POST', `/v2/enqueue/invoices/${app}/ok`, {}, 'waits');
  const weekly = { 'Upstash-Cron': 'CRON_TZ=Europe/Berlin 30 7 * * MON-FRI', 'Upstash-Schedule-Id': 'morning-report' };
  await ask('POST', `/v2/schedules/${app}/ok`, { ...weekly, ...odd }, JSON.stringify({ text: HOSTILE }));
  const endpoints = [{ url: `${app}/ok`, name: 'one' }, { url: `${app}/broken` }];
  await ask('POST', '/v2/topics/subscribers/endpoints', {}, JSON.stringify({ endpoints }));
  await ask('POST', '/v2/publish/subscribers', { 'Upstash-Retries': '0' }, 'to all');

  await eventually('two messages and a run in the DLQ', async () => {
    const { dlq } = await ask<Overview>('GET', '/v2/waypost/overview');
    return dlq.messages.count === 2 && dlq.workflowRuns.count === 1;
  });
  await eventually('a run that sleeps', async () =>
    JSON.stringify(await ask('GET', `/v2/workflows/logs?workflowRunId=${run}`)).includes('give time to reconsider'),
  );
  await eventually('a run that waits for an event', async () => {
    return (await ask<{ waiters: unknown[] }>('GET', '/v2/waypost/waiters')).waiters.length === 1;
  });
  return { delivered, failed, waiting, run, failedRun };
}
