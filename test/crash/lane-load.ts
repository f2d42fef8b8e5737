/**
 * The load on queues and flow-control keys while the server is killed: one client per queue that publishes in order, keys with
 * more work than their limits allow, pauses that outlast a kill, and a queue that is deleted and created again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, Reply } from './client.ts';
import type { Lane, LaneEvent } from './ledger.ts';
import { callbackHeaders, DIES_SOON, FAST_RETRIES, type Load } from './mixed-load.ts';
import { newTag, publishBatch, publishTagged } from './publishing.ts';

type LimitedQueue = Lane & { parallelism: number };

const SINGLE: LimitedQueue = { kind: 'queue', name: 'single', parallelism: 1 };
const DOUBLE: LimitedQueue = { kind: 'queue', name: 'double', parallelism: 2 };
/**
 * A queue that its messages create. The queue may overlap with the last attempt of its deleted predecessor, so its limit
 * is not checked.
 */
const DOOMED: Lane = { kind: 'queue', name: 'doomed' };
const SLOTS: Lane = { kind: 'key', name: 'slots', parallelism: 3 };
const RATED: Lane = { kind: 'key', name: 'rated', rate: 5, periodMs: 1_000 };

export const LANES: readonly Lane[] = [SINGLE, DOUBLE, DOOMED, SLOTS, RATED];

/** Each server starts with more messages than a period of `RATED` allows. */
const RATED_BURST = RATED.rate === undefined ? 0 : RATED.rate + 2;
const SLOTS_WORKERS = 6;

export class LaneLoad {
  readonly #load: Load;
  readonly #slowness: number;
  readonly #deleteSlowness: number;
  /** Lanes that are or may be paused, and are not yet resumed. */
  readonly #paused = new Set<Lane>();

  /**
   * `slowness`: a factor for the pauses between publishes. A factor of 1 fills the lanes of a server that is soon killed.
   * `deleteSlowness`: the factor for the queue that is filled and deleted.
   */
  constructor(load: Load, slowness = 1, deleteSlowness = 1) {
    this.#load = load;
    this.#slowness = slowness;
    this.#deleteSlowness = deleteSlowness;
  }

  /** Creates the queues, since a queue created by a message has parallelism 1. */
  async prepare(client: Client): Promise<void> {
    for (const { name, parallelism } of [SINGLE, DOUBLE]) {
      const headers = { 'content-type': 'application/json' };
      const reply = await client.call('POST', '/v2/queues', headers, JSON.stringify({ queueName: name, parallelism }));
      if (reply.kind !== 'ok') throw new Error(`queue ${name} was not made: ${JSON.stringify(reply)}`);
    }
  }

  /** Runs like `runMixedLoad`. Lanes that are paused when a run ends are still paused when the next run starts. */
  async run(client: Client, signal: AbortSignal): Promise<void> {
    const until = (work: () => Promise<void>) => async () => {
      while (!signal.aborted) await work();
    };
    const works = [
      until(() => this.#enqueue(client, SINGLE)),
      until(() => this.#enqueue(client, DOUBLE)),
      until(() => this.#fillAndDelete(client)),
      until(() => this.#pauseOrResume(client, [SINGLE, DOUBLE], signal)),
      until(() => this.#pauseOrResume(client, [SLOTS, RATED], signal)),
      ...Array.from({ length: SLOTS_WORKERS }, () => until(() => this.#publishLimited(client))),
      () => this.#publishRated(client, RATED_BURST),
    ];
    await Promise.all(works.map((work) => work()));
  }

  /** Resumes all lanes so that all messages can end, and publishes enough for several periods of the rate. */
  async calmDown(client: Client): Promise<void> {
    await this.#publishRated(client, 3 * RATED_BURST);
    for (const lane of [...this.#paused]) await this.#resume(client, lane);
  }

  /**
   * Publishes one by one, each after the response to the previous publish, because otherwise the order is not defined.
   */
  async #enqueue(client: Client, queue: LimitedQueue): Promise<void> {
    const { ledger, endpoints, random } = this.#load;
    const [destination, retries, maxRetries] = random.choose([
      [endpoints.ok, {}, 3],
      [endpoints.ok, {}, 3],
      [endpoints.flaky, FAST_RETRIES, 3],
      [endpoints.dead, DIES_SOON, 1],
    ] as const);
    const hasCallback = random.chance(0.3);
    const isLimited = queue === DOUBLE && random.chance(0.5);
    const lanes = isLimited ? [queue, SLOTS] : [queue];
    const headers = {
      ...retries,
      ...(hasCallback ? callbackHeaders('callback', random.choose([endpoints.told, endpoints.toldTwice])) : {}),
      ...(isLimited ? limitsOf(SLOTS) : {}),
    };
    const enter = (tag: string) => {
      this.#note({ kind: 'entered', entrant: { tag, lanes, maxRetries, hasCallback } });
      if (hasCallback) ledger.callbacksAsked(tag, ['callback']);
    };
    if (random.chance(0.15)) {
      const tags = Array.from({ length: 3 }, newTag);
      tags.forEach(enter);
      const item = { destination, queue: queue.name, headers };
      await publishBatch(ledger, client, tags, (body) => ({ ...item, body }));
    } else {
      await publishTagged(ledger, client, { path: `/v2/enqueue/${queue.name}/${destination}`, headers }, enter);
    }
    await sleep(random.int(15, 40) * this.#slowness);
  }

  async #publishLimited(client: Client): Promise<void> {
    const { ledger, endpoints, random } = this.#load;
    const [destination, retries] = random.choose([
      [endpoints.ok, {}],
      [endpoints.alsoOk, {}],
      [endpoints.flaky, FAST_RETRIES],
    ] as const);
    const post = { path: `/v2/publish/${destination}`, headers: { ...retries, ...limitsOf(SLOTS) } };
    await publishTagged(ledger, client, post, (tag) => this.#enter(tag, SLOTS));
    await sleep(random.int(5, 40) * this.#slowness);
  }

  async #publishRated(client: Client, count: number): Promise<void> {
    const { ledger, endpoints } = this.#load;
    const tags = Array.from({ length: count }, newTag);
    for (const tag of tags) this.#enter(tag, RATED);
    const item = { destination: endpoints.ok, headers: limitsOf(RATED) };
    await publishBatch(ledger, client, tags, (body) => ({ ...item, body }));
  }

  async #fillAndDelete(client: Client): Promise<void> {
    const { ledger, endpoints, random } = this.#load;
    const tags: string[] = [];
    const enqueue = () =>
      publishTagged(ledger, client, { path: `/v2/enqueue/${DOOMED.name}/${endpoints.ok}` }, (tag) => {
        tags.push(tag);
        this.#enter(tag, DOOMED);
      });
    await Promise.all(Array.from({ length: random.int(3, 8) }, enqueue));
    for (const tag of tags) ledger.cancelOfAllAsked(tag);
    const reply = await client.call('DELETE', `/v2/queues/${DOOMED.name}`);
    allowed(reply, `delete ${DOOMED.name}`);
    if (reply.kind === 'ok') this.#note({ kind: 'deleted', lane: DOOMED, incarnation: this.#incarnation });
    await sleep(random.int(5, 40) * this.#deleteSlowness);
  }

  /** Pauses and resumes alternately, so that the lane is paused at about every second kill. */
  async #pauseOrResume(client: Client, lanes: readonly Lane[], signal: AbortSignal): Promise<void> {
    const { random } = this.#load;
    await sleep(random.int(10, 50));
    if (signal.aborted) return;
    const paused = lanes.find((lane) => this.#paused.has(lane));
    if (paused) return this.#resume(client, paused);
    const lane = random.choose(lanes);
    this.#paused.add(lane);
    const reply = await client.call('POST', `${pathOf(lane)}/pause`);
    allowed(reply, `pause ${lane.name}`);
    if (reply.kind === 'ok') this.#note({ kind: 'paused', lane, incarnation: this.#incarnation });
  }

  async #resume(client: Client, lane: Lane): Promise<void> {
    this.#note({ kind: 'resumed', lane });
    const reply = await client.call('POST', `${pathOf(lane)}/resume`);
    allowed(reply, `resume ${lane.name}`);
    if (reply.kind === 'ok') this.#paused.delete(lane);
  }

  #enter(tag: string, lane: Lane): void {
    this.#note({ kind: 'entered', entrant: { tag, lanes: [lane], maxRetries: 3, hasCallback: false } });
  }

  #note(event: LaneEvent): void {
    this.#load.ledger.noteLane(event);
  }

  get #incarnation(): number {
    return this.#load.endpoints.incarnation();
  }
}

function pathOf({ kind, name }: Lane): string {
  return `/v2/${kind === 'queue' ? 'queues' : 'flowControl'}/${name}`;
}

function limitsOf({ name, parallelism, rate, periodMs }: Lane): Record<string, string> {
  const limits = [
    ...(parallelism === undefined ? [] : [`parallelism=${parallelism}`]),
    ...(rate === undefined || periodMs === undefined ? [] : [`rate=${rate}`, `period=${periodMs / 1000}s`]),
  ];
  return { 'Upstash-Flow-Control-Key': name, 'Upstash-Flow-Control-Value': limits.join(', ') };
}

/** Only a server that is shutting down may reject the request. */
function allowed(reply: Reply, what: string): void {
  if (reply.kind === 'refused' && reply.status !== 503) {
    throw new Error(`${what} was answered ${reply.status} ${JSON.stringify(reply.json)}`);
  }
}
