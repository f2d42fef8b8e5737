/** Keeps a server full of life after the scenes of the demo, for whoever looks at its console. */
import { setTimeout as delay } from 'node:timers/promises';
import { playBriefScenes, type Stage, scheduleEachMinute } from './scenes.ts';
import { playFailedRun } from './workflow-scenes.ts';

const BEAT_MS = 2_000;
const ORDER_EVERY_BEATS = 10;

/** Plays the scenes, and leaves some things that wait and some that have failed. Rejects when a scene does. */
export async function begin(stage: Stage): Promise<void> {
  await scheduleEachMinute(stage);
  await playBriefScenes(stage);
  await leaveWaiting(stage);
  await leaveFailed(stage);
}

/** Publishes on and on until `ended` resolves. Rejects when the server refuses. */
export async function goOn(stage: Stage, ended: Promise<unknown>): Promise<void> {
  const end = new AbortController();
  void ended.then(() => end.abort());
  for (let beat = 0; !end.signal.aborted; beat += 1) {
    await publishSome(stage, beat);
    await delay(BEAT_MS, undefined, { signal: end.signal }).catch(() => undefined); // rejects at the end
  }
}

/** For each reason to wait something that does so. */
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

/** A message and a run that a person can repair: the bank is open again. */
async function leaveFailed({ client, receiver, workflows, write }: Stage): Promise<void> {
  await client.publishJSON({ url: `${receiver.url}/down`, body: { order: 43 }, retries: 1, retryDelay: '1000' });
  await playFailedRun({ ...workflows, write });
}

async function publishSome({ client, receiver, workflows }: Stage, beat: number): Promise<void> {
  const body = { beat };
  await client.publishJSON({ url: `${receiver.url}/hello`, body, label: 'greeting' });
  await client.queue({ queueName: 'orders' }).enqueueJSON({ url: `${receiver.url}/slow/${beat}`, body });
  const flowControl = { key: 'mail-provider', rate: 2, period: '5s' } as const;
  await client.publishJSON({ url: `${receiver.url}/mail`, body, flowControl });
  if (beat % ORDER_EVERY_BEATS !== 0) return;
  await client.publishJSON({ url: `${receiver.url}/shaky`, body, retryDelay: '3000' });
  await client.publishJSON({ url: `${receiver.url}/down`, body, retries: 2, retryDelay: '5000' });
  await workflows.client.trigger({ url: `${workflows.app.url}/order`, body: { number: 100 + beat, item: 'a kettle' } });
}
