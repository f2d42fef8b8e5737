/**
 * Another project on a server under load: `node bench/overload/other-project.ts <server> <token>`. Ten times a second it
 * publishes a message with a delay of one second, and one to a queue, for an endpoint of its own, and measures the time from
 * the due time to the arrival. The program is a separate process, so that only the server delays it.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';

export interface OtherProject {
  /** From the requested time of a delayed message to its arrival. */
  delayedMs: number[];
  /** From the response of the publish to the arrival of the queued message; 0 if the message arrived first. */
  queuedMs: number[];
  /** Publishes with status 503. */
  shed: number;
  /** Accepted messages that did not arrive within `ARRIVAL_LIMIT_MS` after the end. */
  missing: number;
}

const EVERY_MS = 100;
const DELAY_MS = 1_000;
/** Unmeasured messages before the measurement. */
const WARM_UP = 20;
const ARRIVAL_LIMIT_MS = 15_000;

const [server = '', token = ''] = process.argv.slice(2);
const figures: OtherProject = { delayedMs: [], queuedMs: [], shed: 0, missing: 0 };
/** The due times, as soon as they are known, and the arrival times, by the name of the message. */
const dueAtMs = new Map<string, number>();
const arrivedAtMs = new Map<string, number>();

const endpoint = createServer((incoming, response) => {
  arrivedAtMs.set(incoming.url?.slice(1) ?? '', performance.now());
  incoming.resume();
  response.end();
});
endpoint.listen(0, '127.0.0.1');
await once(endpoint, 'listening');
const url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}`;

async function publish(name: string, path: string, headers: Record<string, string>, delayMs: number): Promise<void> {
  const sentMs = performance.now();
  const response = await request(`${server}${path}/${url}/${name}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, ...headers },
    body: name,
  });
  await response.body.dump();
  if (response.statusCode === 503) figures.shed += 1;
  // The delay starts when the server accepts the request, which is never before `sentMs`.
  else if (response.statusCode < 300) dueAtMs.set(name, delayMs > 0 ? sentMs + delayMs : performance.now());
  else throw new Error(`publish rejected: ${response.statusCode}`);
}

let ending = false;
process.once('message', () => {
  ending = true;
});
// The first requests of a new process are slow, especially on a busy machine.
for (let nth = 0; nth < WARM_UP; nth += 1) await publish(`warm-up-${nth}`, '/v2/enqueue/orders', {}, 0);
while (arrivedAtMs.size < WARM_UP) await sleep(10);
dueAtMs.clear();
process.send?.('publishing');
const publishes: Promise<void>[] = [];
for (let nth = 0; !ending; nth += 1) {
  publishes.push(publish(`delayed-${nth}`, '/v2/publish', { 'upstash-delay': `${DELAY_MS / 1_000}s` }, DELAY_MS));
  publishes.push(publish(`queued-${nth}`, '/v2/enqueue/orders', {}, 0));
  await sleep(EVERY_MS);
}
await Promise.all(publishes);
const limitMs = performance.now() + ARRIVAL_LIMIT_MS;
while (performance.now() < limitMs && [...dueAtMs.keys()].some((name) => !arrivedAtMs.has(name))) await sleep(50);
for (const [name, dueMs] of dueAtMs) {
  const arrivedMs = arrivedAtMs.get(name);
  if (arrivedMs === undefined) figures.missing += 1;
  else (name.startsWith('delayed') ? figures.delayedMs : figures.queuedMs).push(Math.max(0, arrivedMs - dueMs));
}
process.send?.(figures, () => process.exit(0));
