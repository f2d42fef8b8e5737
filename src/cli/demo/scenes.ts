/** The scenes of the demo, in order. Each scene publishes with the official client, and waits for the expected states. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@upstash/qstash';
import type { Narrator } from './narrator.ts';
import type { DemoReceiver } from './receiver.ts';
import { playWorkflows, type WorkflowStage } from './workflow-scenes.ts';

const LIMIT_MS = 30_000;
const POLL_MS = 200;

export interface Stage {
  client: Client;
  receiver: DemoReceiver;
  narrator: Narrator;
  write: (line: string) => void;
  workflows: Pick<WorkflowStage, 'client' | 'app' | 'color'>;
}

/** Plays all scenes; rejects if a message or a run does not end as expected. */
export async function play(stage: Stage): Promise<void> {
  const scheduleId = await scheduleEachMinute(stage);
  await playBriefScenes(stage);
  await showSchedule(stage, scheduleId);
}

/** Plays all scenes except the schedule, which waits for the next minute. */
export async function playBriefScenes(stage: Stage): Promise<void> {
  const doomed = await publishAll(stage);
  await retryFromDlq(stage, doomed);
  await showCallback(stage);
  await publishToGroup(stage);
  await waitInQueue(stage);
  await limitRate(stage);
  await playWorkflows({ ...stage.workflows, write: stage.write });
}

/** Creates a schedule and returns its id. */
export async function scheduleEachMinute({ client, receiver, write }: Stage): Promise<string> {
  const { scheduleId } = await client.schedules.create({ destination: `${receiver.url}/report`, cron: '* * * * *' });
  const { nextScheduleTime } = await client.schedules.get(scheduleId);
  const next = new Date(nextScheduleTime ?? 0).toISOString().slice(11, 16);
  write(`\nCreated a schedule for every minute; the next trigger is at ${next} by the clock of this server.`);
  return scheduleId;
}

/** Publishes messages with different outcomes; returns the id of the message that ends in the DLQ. */
async function publishAll({ client, receiver, narrator, write }: Stage): Promise<string> {
  write(
    '\nPublishing: one immediate message, one delayed, a batch of three, one that fails twice, one that never succeeds.\n',
  );
  const now = await client.publishJSON({ url: `${receiver.url}/hello`, body: { hello: 'world' } });
  narrator.follow('immediate', now.messageId);
  const delayed = await client.publishJSON({ url: `${receiver.url}/later`, body: { hello: 'later' }, delay: '2s' });
  narrator.follow('delayed by 2 s', delayed.messageId);
  const batch = await client.batchJSON(
    [1, 2, 3].map((number) => ({ url: `${receiver.url}/batch/${number}`, body: { number } })),
  );
  const batchIds = batch.map((published) => published.messageId);
  batchIds.forEach((id, index) => {
    narrator.follow(`batch, ${index + 1} of 3`, id);
  });
  const shaky = await client.publish({ url: `${receiver.url}/shaky`, body: 'please', retries: 3, retryDelay: '600' });
  narrator.follow('fails twice', shaky.messageId);
  const doomed = await client.publish({ url: `${receiver.url}/broken`, body: 'alas', retries: 1, retryDelay: '400' });
  narrator.follow('never succeeds', doomed.messageId);

  const delivered = [now.messageId, delayed.messageId, ...batchIds, shaky.messageId];
  const expected = Object.fromEntries(delivered.map((id) => [id, 'DELIVERED']));
  await narrator.waitForStates({ ...expected, [doomed.messageId]: 'FAILED' }, LIMIT_MS);
  return doomed.messageId;
}

async function retryFromDlq({ client, receiver, narrator, write }: Stage, doomed: string): Promise<void> {
  const { messages } = await client.dlq.listMessages({ filter: { messageId: doomed } });
  const dead = messages[0];
  if (!dead) throw new Error('the dead message is not in the dead letter queue');
  write(`\nThe endpoint is fixed; retrying ${dead.dlqId} from the dead letter queue.\n`);
  receiver.repair();
  const { responses } = await client.dlq.retry(dead.dlqId);
  const retried = responses[0];
  if (!retried) throw new Error('the dead letter queue returned no message');
  narrator.follow('retried from the DLQ', retried.messageId);
  await narrator.waitForStates({ [retried.messageId]: 'DELIVERED' }, LIMIT_MS);
}

async function showCallback({ client, receiver, narrator, write }: Stage): Promise<void> {
  write('\nPublishing one with a callback, which reports the response to another endpoint.\n');
  const callback = `${receiver.url}/answers`;
  const { messageId } = await client.publish({ url: `${receiver.url}/work`, body: 'order 42', callback });
  narrator.follow('has a callback', messageId);
  await narrator.waitForStates({ [messageId]: 'DELIVERED' }, LIMIT_MS);
  // The callback is saved in the same transaction as the outcome of the delivery, so the callback exists now.
  const { logs } = await client.logs({ filter: { url: callback } });
  const sent = logs[0];
  if (!sent?.body) throw new Error('the callback was not sent');
  narrator.follow('the callback', sent.messageId);
  await narrator.waitForStates({ [sent.messageId]: 'DELIVERED' }, LIMIT_MS);
  const { status, body } = JSON.parse(atob(sent.body)) as { status: number; body: string };
  write(`\nThe callback reported: status ${status}, response "${atob(body).trim()}".`);
}

async function showSchedule({ client, narrator, write }: Stage, scheduleId: string): Promise<void> {
  write('\nThe schedule published a message at the start of the minute.\n');
  const messageId = await firstMessageOf(client, scheduleId);
  narrator.follow('from the schedule', messageId);
  await narrator.waitForStates({ [messageId]: 'DELIVERED' }, LIMIT_MS);
  await client.schedules.delete(scheduleId);
}

async function firstMessageOf(client: Client, scheduleId: string): Promise<string> {
  for (let waitedMs = 0; waitedMs < LIMIT_MS; waitedMs += POLL_MS) {
    const { logs } = await client.logs({ filter: { scheduleId } });
    const first = logs.at(-1);
    if (first) return first.messageId;
    await delay(POLL_MS);
  }
  throw new Error('the schedule published no message');
}

async function publishToGroup({ client, receiver, narrator, write }: Stage): Promise<void> {
  write('\nPublishing once to a URL group of two endpoints: a message for each.\n');
  const name = 'subscribers';
  await client.urlGroups.addEndpoints({
    name,
    endpoints: [
      { name: 'mail', url: `${receiver.url}/mail` },
      { name: 'stock', url: `${receiver.url}/stock` },
    ],
  });
  const published = await client.publishJSON({ urlGroup: name, body: { order: 42 } });
  const [mail, stock] = published.map(({ messageId }) => messageId);
  narrator.follow('group, to mail', mail ?? '');
  narrator.follow('group, to stock', stock ?? '');
  await narrator.waitForStates(
    Object.fromEntries(published.map(({ messageId }) => [messageId, 'DELIVERED'])),
    LIMIT_MS,
  );
}

async function waitInQueue({ client, receiver, narrator, write }: Stage): Promise<void> {
  write('\nEnqueueing three: each is delivered after the previous one has finished.\n');
  const queue = client.queue({ queueName: 'orders' });
  const ids: string[] = [];
  for (const number of [1, 2, 3]) {
    const { messageId } = await queue.enqueueJSON({ url: `${receiver.url}/slow/${number}`, body: { number } });
    narrator.follow(`queue, ${number} of 3`, messageId);
    ids.push(messageId);
  }
  await narrator.waitForStates(Object.fromEntries(ids.map((id) => [id, 'DELIVERED'])), LIMIT_MS);
}

async function limitRate({ client, receiver, narrator, write }: Stage): Promise<void> {
  write('\nPublishing four with a flow-control key that allows two per second.\n');
  const flowControl = { key: 'mail-provider', rate: 2, period: '1s' } as const;
  const ids: string[] = [];
  for (const number of [1, 2, 3, 4]) {
    const { messageId } = await client.publishJSON({ url: `${receiver.url}/mail`, body: { number }, flowControl });
    narrator.follow(`two per second, ${number} of 4`, messageId);
    ids.push(messageId);
  }
  await narrator.waitForStates(Object.fromEntries(ids.map((id) => [id, 'DELIVERED'])), LIMIT_MS);
}
