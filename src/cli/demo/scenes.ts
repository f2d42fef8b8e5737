/** What the demo publishes, with the official client, and what must become of each message. */
import type { Client } from '@upstash/qstash';
import type { Narrator } from './narrator.ts';
import type { DemoReceiver } from './receiver.ts';

const LIMIT_MS = 30_000;

export interface Stage {
  client: Client;
  receiver: DemoReceiver;
  narrator: Narrator;
  write: (line: string) => void;
}

/** Plays all scenes; rejects when a message does not end as it should. */
export async function play(stage: Stage): Promise<void> {
  const doomed = await publishAll(stage);
  await retryFromDlq(stage, doomed);
  await tellOfAnswer(stage);
}

/** Returns the id of the message that must end in the DLQ. */
async function publishAll({ client, receiver, narrator, write }: Stage): Promise<string> {
  write('\nPublishing: one at once, one delayed, a batch of three, one that fails twice, one that never succeeds.\n');
  const now = await client.publishJSON({ url: `${receiver.url}/hello`, body: { hello: 'world' } });
  narrator.follow('at once', now.messageId);
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
  await narrator.until({ ...expected, [doomed.messageId]: 'FAILED' }, LIMIT_MS);
  return doomed.messageId;
}

async function retryFromDlq({ client, receiver, narrator, write }: Stage, doomed: string): Promise<void> {
  const { messages } = await client.dlq.listMessages({ filter: { messageId: doomed } });
  const dead = messages[0];
  if (!dead) throw new Error('the message that failed is not in the dead letter queue');
  write(`\nThe endpoint is repaired; retrying ${dead.dlqId} from the dead letter queue.\n`);
  receiver.repair();
  const { responses } = await client.dlq.retry(dead.dlqId);
  const revived = responses[0];
  if (!revived) throw new Error('the dead letter queue gave nothing back');
  narrator.follow('retried from the DLQ', revived.messageId);
  await narrator.until({ [revived.messageId]: 'DELIVERED' }, LIMIT_MS);
}

async function tellOfAnswer({ client, receiver, narrator, write }: Stage): Promise<void> {
  write('\nPublishing one whose answer is brought to another endpoint: a callback.\n');
  const callback = `${receiver.url}/answers`;
  const { messageId } = await client.publish({ url: `${receiver.url}/work`, body: 'order 42', callback });
  narrator.follow('has a callback', messageId);
  await narrator.until({ [messageId]: 'DELIVERED' }, LIMIT_MS);
  // It was saved together with the delivery, so it is there by now.
  const { logs } = await client.logs({ filter: { url: callback } });
  const told = logs[0];
  if (!told?.body) throw new Error('the callback was not sent');
  narrator.follow('the callback', told.messageId);
  await narrator.until({ [told.messageId]: 'DELIVERED' }, LIMIT_MS);
  const { status, body } = JSON.parse(atob(told.body)) as { status: number; body: string };
  write(`\nThe callback said: status ${status}, answer "${atob(body).trim()}".`);
}
