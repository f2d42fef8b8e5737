/** Fills a server with a little of everything that the console shows. */
import { HOSTILE } from './hostile.ts';

export interface Places {
  /** The server, without a slash at the end. */
  url: string;
  token: string;
  /** Answers 200, but 500 below /broken, and waits for its end below /slow. */
  endpoint: string;
}

export async function populate({ url, token, endpoint }: Places): Promise<void> {
  const send = async (method: string, target: string, headers: Record<string, string> = {}, body?: string) => {
    const response = await fetch(`${url}${target}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(body !== undefined && { body }),
    });
    if (!response.ok) throw new Error(`${method} ${target}: ${response.status} ${await response.text()}`);
  };
  const publish = (path: string, headers: Record<string, string>, body = '{"number":1}') =>
    send('POST', `/v2/publish/${endpoint}${path}`, { 'Content-Type': 'application/json', ...headers }, body);

  await publish('/ok', { 'Upstash-Label': 'orders' }, JSON.stringify({ text: HOSTILE }));
  await publish(`/ok?${'long='.repeat(200)}`, { 'Upstash-Forward-X-Odd': encodeURIComponent(HOSTILE) });
  await publish('/broken', { 'Upstash-Retries': '0' });
  await publish('/broken', { 'Upstash-Retries': '3' });
  await publish('/ok', { 'Upstash-Delay': '1h' });
  await publish('/slow', { 'Upstash-Flow-Control-Key': 'crm', 'Upstash-Flow-Control-Value': 'parallelism=1' });
  await publish('/slow', { 'Upstash-Flow-Control-Key': 'crm', 'Upstash-Flow-Control-Value': 'parallelism=1' });
  await send(
    'POST',
    '/v2/queues',
    { 'Content-Type': 'application/json' },
    JSON.stringify({ queueName: 'invoices', parallelism: 2 }),
  );
  await send('POST', '/v2/queues/invoices/pause');
  await send('POST', `/v2/enqueue/invoices/${endpoint}/ok`, {}, 'waits');
  await send('POST', `/v2/schedules/${endpoint}/ok`, {
    'Upstash-Cron': 'CRON_TZ=Europe/Berlin 30 7 * * MON-FRI',
    'Upstash-Schedule-Id': 'morning-report',
  });
  await send(
    'POST',
    '/v2/topics/subscribers/endpoints',
    { 'Content-Type': 'application/json' },
    JSON.stringify({ endpoints: [{ url: `${endpoint}/ok`, name: 'one' }, { url: `${endpoint}/broken` }] }),
  );
  await send('POST', '/v2/publish/subscribers', { 'Upstash-Retries': '0' }, 'to all');
}
