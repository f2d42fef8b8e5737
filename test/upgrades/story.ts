/**
 * Everything that a store can contain, once: created on a server of an earlier version, which is then killed. Its responses are
 * stored beside the data, so that later versions can be checked against them.
 */
import { eventually } from '../support/eventually.ts';
import { ask, type Json } from './api.ts';
import { EVENT, type Outside } from './outside.ts';

/** How the server is started that hears the story: so few attempts a destination that some of its messages wait for one. */
export const STORY_SETTINGS = ['--in-flight-per-origin-max', '12'];

/** The ids of what was published, under what became of it. */
export interface Told {
  /** The port of the endpoints, wherever a URL is stored. */
  port: number;
  /** Unfinished, with nothing in the way: due, claimed, waiting for a retry, its period or a slot. By path. */
  owed: { path: string; messageId: string }[];
  /** In the paused queue, and in the list of the paused key: in this order. */
  held: { queue: string[]; key: string[] };
  /** In the dead letter queue. */
  dead: { messageId: string; dlqId: string }[];
  /** Delivered or cancelled: never sent again. */
  over: string[];
  schedules: { active: string; paused: string };
  /** Runs by their program. */
  runs: {
    sleeps: string;
    invokes: string;
    waits: string;
    waitsInVain: string;
    fails: string;
    ends: string;
    cancelled: string;
  };
}

export async function tell(url: string, outside: Outside): Promise<Told> {
  const { origin } = outside;
  const publish = async (path: string, headers: Record<string, string> = {}, verb = 'publish'): Promise<string> =>
    (await ask(url, `/v2/${verb}/${origin}${path}`, { headers, body: path })).messageId;
  const trigger = async (program: string): Promise<string> =>
    (await ask(url, `/v2/trigger/${origin}/workflows/${program}`, { headers: SDK, body: '"told"' })).workflowRunId;
  const several = (count: number, make: () => Promise<string>) => inTurn(Array.from({ length: count }, () => make));

  const runs = {
    sleeps: await trigger('sleeps'),
    invokes: await trigger('invokes'),
    waits: await trigger('waits'),
    waitsInVain: await trigger('waitsInVain'),
    fails: await trigger('fails'),
    ends: await trigger('ends'),
    cancelled: await trigger('waits'),
  };
  const stateOf = async (run: string) => (await logOf(url, run))?.workflowState as string | undefined;
  await eventually('a run to fail', async () => (await stateOf(runs.fails)) === 'RUN_FAILED');
  await eventually('a run to end', async () => (await stateOf(runs.ends)) === 'RUN_SUCCESS');
  await eventually('runs to wait', async () => (await ask(url, `/v2/waiters/${EVENT}`, GET)).length === 2);
  await eventually('a run to wait in vain', async () => (await ask(url, '/v2/waiters/never', GET)).length === 1);
  await eventually('children to sleep', () => outside.arrivals('/workflows/sleeps').length >= 4);
  await ask(url, `/v2/workflows/runs/${runs.cancelled}`, { method: 'DELETE' });

  const over = [await publish('/ok', { 'Upstash-Callback': `${origin}/told` }), await publish('/cancelled', LATER)];
  await ask(url, `/v2/messages/${over[1]}`, { method: 'DELETE' });
  await eventually('a callback', () => outside.arrivals('/told').length === 1);
  await publish('/fails', { 'Upstash-Retries': '0' });
  const dead = await eventually('a dead letter', async () => {
    const { messages } = await ask(url, '/v2/dlq', GET);
    return messages.some(({ url: destination }: Json) => destination.endsWith('/fails')) ? messages : undefined;
  });

  const owed: Told['owed'] = [];
  const owe = (path: string, ids: readonly string[]) => owed.push(...ids.map((messageId) => ({ path, messageId })));
  owe('/delayed', [await publish('/delayed', LATER)]);
  owe('/deduplicated', [await publish('/deduplicated', { ...LATER, 'Upstash-Deduplication-Id': 'once' })]);
  owe('/fails', [await publish('/fails', { 'Upstash-Retries': '3', 'Upstash-Retry-Delay': '20000' })]);
  await ask(url, '/v2/queues', { body: JSON.stringify({ queueName: 'ordered', parallelism: 1 }) });
  owe('/hangs', await several(3, () => publish('/hangs', {}, 'enqueue/ordered')));
  const byKey = { 'Upstash-Flow-Control-Key': 'narrow', 'Upstash-Flow-Control-Value': 'parallelism=1' };
  owe('/hangs', await several(3, () => publish('/hangs', byKey)));
  const byRate = { 'Upstash-Flow-Control-Key': 'slow', 'Upstash-Flow-Control-Value': 'rate=1, period=30s' };
  const [served = '', ...limited] = await several(2, () => publish('/limited', byRate));
  await eventually('the first of its period', () => outside.arrivals('/limited').length === 1);
  over.push(served);
  owe('/limited', limited);

  await ask(url, '/v2/queues', { body: JSON.stringify({ queueName: 'paused', parallelism: 1 }) });
  await ask(url, '/v2/queues/paused/pause');
  await ask(url, '/v2/flowControl/paused/pause');
  const held = {
    queue: await several(2, () => publish('/queued', {}, 'enqueue/paused')),
    key: await several(2, () =>
      publish('/keyed', { 'Upstash-Flow-Control-Key': 'paused', 'Upstash-Flow-Control-Value': 'parallelism=1' }),
    ),
  };

  const endpoints = [
    { url: `${origin}/grouped`, name: 'first' },
    { url: `${origin}/grouped-too`, name: 'second' },
  ];
  await ask(url, '/v2/topics/group/endpoints', { body: JSON.stringify({ endpoints }) });
  const grouped: Json[] = await ask(url, '/v2/publish/group', { headers: LATER, body: 'to all' });
  const [first, second] = grouped.map(({ messageId }) => messageId as string);
  owe('/grouped', [first ?? '']);
  owe('/grouped-too', [second ?? '']);
  const schedule = async (path: string): Promise<string> =>
    (await ask(url, `/v2/schedules/${origin}${path}`, { headers: { 'Upstash-Cron': '* * * * *' }, body: path }))
      .scheduleId;
  const schedules = { active: await schedule('/scheduled'), paused: await schedule('/never-scheduled') };
  await ask(url, `/v2/schedules/${schedules.paused}/pause`);

  // Those that hang take all attempts of their origin; what comes then waits for one of them.
  const hanging = { 'Upstash-Callback': `${origin}/told-late` };
  owe('/hangs', await several(12, () => publish('/hangs', hanging)));
  owe('/ok', await several(3, () => publish('/ok')));
  return {
    port: outside.port,
    owed,
    held,
    dead: dead.map(({ messageId, dlqId }: Json) => ({ messageId, dlqId })),
    over,
    schedules,
    runs,
  };
}

const GET = { method: 'GET' };
/** The time is over when a version to come opens the store. */
const LATER = { 'Upstash-Delay': '20s' };
const SDK = { 'Upstash-Workflow-Sdk-Version': '1', 'Upstash-Retries': '0' };

/** The history of a run. */
export async function logOf(url: string, run: string): Promise<Json> {
  const { runs } = await ask(url, `/v2/workflows/logs?workflowRunId=${run}`, GET);
  return runs[0];
}

async function inTurn<T>(makers: readonly (() => Promise<T>)[]): Promise<T[]> {
  const made: T[] = [];
  for (const make of makers) made.push(await make());
  return made;
}
