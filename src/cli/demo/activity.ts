/** Keeps publishing messages after the scenes of the demo, so that the console has activity to show. */
import { setTimeout as delay } from 'node:timers/promises';
import { playBriefScenes, type Stage, scheduleEachMinute } from './scenes.ts';
import { playFailedRun } from './workflow-scenes.ts';

const ROUND_MS = 2_000;
const ORDER_EVERY_ROUNDS = 10;

/** Plays the scenes, and leaves some messages and runs waiting, dead or failed. Rejects if a scene rejects. */
export async function startActivity(stage: Stage): Promise<void> {
  await scheduleEachMinute(stage);
  await playBriefScenes(stage);
  await leaveWaiting(stage);
  await leaveFailed(stage);
}

/** Publishes until `ended` resolves. Rejects if the server refuses a message. */
export async function keepPublishing(stage: Stage, ended: Promise<unknown>): Promise<void> {
  const end = new AbortController();
  void ended.then(() => end.abort());
  for (let round = 0; !end.signal.aborted; round += 1) {
    await publishRound(stage, round);
    await delay(ROUND_MS, undefined, { signal: end.signal }).catch(() => undefined); // rejects at the end
  }
}

/** Leaves a message or run for each common reason to wait. */
async function leaveWaiting({ client, receiver, workflows }: Stage): Promise<void> {
  await client.publishJSON({ url: `${receiver.url}/later`, body: { tea: 'time' }, delay: '1h', label: 'reminder' });
  const queue = client.queue({ queueName: 'invoices' });
  await queue.upsert({ parallelism: 1, paused: true });
  const key = 'the-slow-partner';
  await client.flowControl.pause(key);
  for (const number of [1, 2, 3]) {
    const body = { number };
    await queue.enqueueJSON({ url: `${receiver.url}/invoices`, body });
    await client.publishJSON({ url: `${receiver.url}/partner`, body, flowControl: { key, parallelism: 1 } });
  }
  await workflows.client.trigger({ url: `${workflows.app.url}/letter`, body: { number: 7, item: 'a lamp' } });
}

/**
 * Leaves a dead message, and a run that failed because the demo's bank was closed. The bank is open again, so resuming
 * the run succeeds.
 */
async function leaveFailed({ client, receiver, workflows, write }: Stage): Promise<void> {
  await client.publishJSON({ url: `${receiver.url}/down`, body: { order: 43 }, retries: 1, retryDelay: '1000' });
  await playFailedRun({ ...workflows, write });
}

async function publishRound({ client, receiver, workflows }: Stage, round: number): Promise<void> {
  const body = { round };
  await client.publishJSON({ url: `${receiver.url}/hello`, body, label: 'greeting' });
  await client.queue({ queueName: 'orders' }).enqueueJSON({ url: `${receiver.url}/slow/${round}`, body });
  const flowControl = { key: 'mail-provider', rate: 2, period: '5s' } as const;
  await client.publishJSON({ url: `${receiver.url}/mail`, body, flowControl });
  if (round % ORDER_EVERY_ROUNDS !== 0) return;
  await client.publishJSON({ url: `${receiver.url}/shaky`, body, retryDelay: '3000' });
  await client.publishJSON({ url: `${receiver.url}/down`, body, retries: 2, retryDelay: '5000' });
  await workflows.client.trigger({
    url: `${workflows.app.url}/order`,
    body: { number: 100 + round, item: 'a kettle' },
  });
}
