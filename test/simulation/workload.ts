/** Draws random actions of clients, and random faults. */

import type { Page, PageRequest } from '../../src/engine/lists/page.ts';
import { decide } from '../../src/engine/messages/decide.ts';
import type { PublishCommand } from '../../src/engine/messages/publish-command.ts';
import { publishesToGroup } from '../../src/engine/messages/url-groups.ts';
import type { FollowUp, MessageKey, Millis, NewMessage } from '../../src/engine/model.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { LogEntry } from '../../src/engine/stores.ts';
import { mintMessageId } from '../../src/protocol/ids.ts';
import type { CallbackSettings } from '../../src/protocol/options/settings.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { cellsOf } from './cells/open.ts';
import { HEALTHY_ORIGIN, healthy, MOODY_ORIGINS, moody, OTHERS_ORIGIN } from './endpoints.ts';
import { GROUPS, GroupWorkload } from './group-workload.ts';
import { inspect } from './inspection.ts';
import { LaneWorkload } from './lanes-workload.ts';
import { bodyOf, type Publish } from './ledger.ts';
import { ScheduleWorkload } from './schedule-workload.ts';
import { BODY_BYTES_MAX, PROJECT, type World } from './world.ts';

/** The relative frequency of each action. */
const STEP_WEIGHTS = {
  publishOne: 40,
  publishBatch: 12,
  burst: 4,
  cancelById: 8,
  attemptNow: 4,
  cancelByLabel: 3,
  retryDead: 8,
  deleteDead: 4,
  pageLogs: 3,
  pageDead: 2,
  changeMood: 10,
  jumpClock: 2,
  makeUnavailable: 2,
  crash: 4,
  shutDown: 3,
  lateResult: 8,
  lane: 16,
  schedule: 14,
  group: 8,
  publishToGroup: 8,
  inspect: 6,
};

const LABELS = ['red', 'green', 'blue'];
const RETRY_DELAYS = ['0', '1000', '1000 * (1 + retried)', 'pow(2, retried) * 500', '1 / (1 - retried) * 1000'];
const HOUR_MS = 3_600_000;
/**
 * Callbacks contain the body of their source and are a third longer than this body. At the third level, callbacks are as
 * long as other messages.
 */
const SOURCE_BODY_BYTES_MAX = 150;

export class Workload {
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #lanes: LaneWorkload;
  readonly #groups: GroupWorkload;
  readonly schedules: ScheduleWorkload;

  constructor(world: World, random: SeededRandom) {
    this.#world = world;
    this.#random = random.fork();
    this.#lanes = new LaneWorkload(world, this.#random);
    this.#groups = new GroupWorkload(world, this.#random);
    this.schedules = new ScheduleWorkload(world, this.#random, () => this.#command());
    this.#setMoods();
  }

  /** Starts one random action. Its calls continue while time passes. */
  step(): void {
    const step = this.#random.weighted(STEP_WEIGHTS);
    void this[`${step}`]();
  }

  /** From now on all endpoints respond with success. */
  heal(): void {
    for (const origin of MOODY_ORIGINS) this.#world.network.setEndpoint(origin, healthy(this.#random.fork()));
  }

  /** Resumes all paused lanes and removes all pins. */
  openLanes(): Promise<void> {
    return this.#lanes.openAll();
  }

  lane(): void {
    this.#lanes.step();
  }

  schedule(): void {
    this.schedules.step();
  }

  group(): void {
    this.#groups.step();
  }

  inspect(): Promise<void> {
    return inspect(this.#world);
  }

  /** The pause between two steps: often short, so that actions overlap; seldom so long that all work finishes. */
  pauseMs(): Millis {
    if (this.#random.chance(0.03)) return this.#random.int(60_000, 240_000);
    return this.#random.chance(0.7) ? this.#random.int(0, 50) : this.#random.int(50, 15_000);
  }

  publishOne(): Promise<void> {
    return this.#publish([this.#command()]);
  }

  /** Publishes a plain message of a project that is seldom moved. */
  async publishForOther(): Promise<void> {
    const [directory, ...others] = this.#world.databases;
    if (!directory || others.length === 0) return;
    const projectId = this.#random.int(2, others.length + 1);
    const cellId = (await cellsOf(directory.driver)).get(projectId) ?? 0;
    const settings = { dialect: 'upstash' as const, maxRetries: 1 };
    const options = { method: 'POST' as const, header: {}, explicitHeader: {}, settings };
    await this.#publish([{ url: `${OTHERS_ORIGIN}/hook`, body: new Uint8Array(), options }], { projectId, cellId });
  }

  publishBatch(): Promise<void> {
    return this.#publish(Array.from({ length: this.#random.int(2, 12) }, () => this.#command()));
  }

  /** Publishes to a URL group: one message for each endpoint, in one publish. */
  async publishToGroup(): Promise<void> {
    const { engine, ledger, clock } = this.#world;
    if (!engine) return;
    const groupName = this.#random.choose(GROUPS);
    const { url: _, body, options } = this.#command();
    const { deduplication: __, ...shared } = options;
    const startAtMs = clock.elapsedMs;
    const group = await this.#readIfReachable('group', () =>
      engine.storeOf(PROJECT).urlGroups.findUrlGroup({ name: groupName }),
    );
    if (!group || !this.#world.runs(engine)) return;
    const commands = publishesToGroup(group, { body, options: shared });
    ledger.groupPublishes.push({
      groupName,
      urls: commands.map(({ url }) => url),
      startAtMs,
      readAtMs: clock.elapsedMs,
    });
    await this.#publish(commands);
  }

  /** Publishes more messages to one origin than it may have in flight. */
  async burst(): Promise<void> {
    const url = this.#url();
    const lanes = this.#lanes.lanesOfMessage();
    const count = this.#random.int(5, 25);
    await Promise.all(
      Array.from({ length: count }, () => this.#publish([this.#command({ url, lanes, atOnce: true })])),
    );
  }

  async cancelById(): Promise<void> {
    const { engine, ledger } = this.#world;
    const known = ledger.acknowledgedIds();
    if (!engine || known.length === 0) return;
    // Mostly recent messages are chosen, because older messages have ended.
    const young = known.slice(-20);
    const ids = [...new Set(Array.from({ length: this.#random.int(1, 4) }, () => this.#random.choose(young)))];
    const call = ledger.start(ledger.cancels, { ids });
    await this.#world.call(
      call,
      `cancel of ${ids.join(' ')}`,
      () => engine.storeOf(PROJECT).messages.cancelById({ ids }),
      (count) => {
        if (count > ids.length) this.#world.violate('P2', `${count} of ${ids.length} messages were cancelled`);
      },
    );
  }

  async attemptNow(): Promise<void> {
    const { engine, ledger } = this.#world;
    const young = ledger.acknowledgedIds().slice(-20);
    if (!engine || young.length === 0) return;
    const id = this.#random.choose(young);
    const call = ledger.start(ledger.immediateAttempts, { id });
    await this.#world.call(
      call,
      `attempt of ${id} at once`,
      () => engine.storeOf(PROJECT).messages.makeDue({ id }),
      () => {},
    );
  }

  async cancelByLabel(): Promise<void> {
    const { engine, ledger } = this.#world;
    if (!engine) return;
    const label = this.#random.choose(LABELS);
    const call = ledger.start(ledger.cancels, { label });
    await this.#world.call(
      call,
      `cancel of ${label} messages`,
      () => engine.cancelMatching(PROJECT, { label: [label] }),
      () => {},
    );
  }

  retryDead(): Promise<void> {
    return this.#actOnDead('retry');
  }

  deleteDead(): Promise<void> {
    return this.#actOnDead('delete');
  }

  /** Pages through all logs while they are written: no existing entry is skipped or repeated. */
  async pageLogs(): Promise<void> {
    const { engine } = this.#world;
    if (!engine) return;
    const order = this.#random.choose(['latestFirst', 'earliestFirst'] as const);
    const list = (page: PageRequest) => engine.storeOf(PROJECT).logs.listLogs({ filter: {}, page });
    const found = await this.#readIfReachable('list of logs', () => this.#thrice(list, order, nameOf));
    if (found) this.#compare('log entry', ...found);
  }

  async pageDead(): Promise<void> {
    const { engine } = this.#world;
    if (!engine) return;
    const order = this.#random.choose(['latestFirst', 'earliestFirst'] as const);
    const list = (page: PageRequest) => engine.storeOf(PROJECT).dead.listDead({ filter: {}, page });
    const found = await this.#readIfReachable('DLQ', () => this.#thrice(list, order, ({ dlqId }) => dlqId));
    if (!found) return;
    const [before, paged, after] = found;
    // Entries may be retried or deleted while the pages are read.
    const stayed = before.filter((dlqId) => after.includes(dlqId));
    this.#compare('DLQ entry', stayed, paged, [
      ...before,
      ...after.filter((dlqId) => !before.includes(dlqId)),
      ...paged,
    ]);
  }

  changeMood(): void {
    this.#setMood(this.#random.choose(MOODY_ORIGINS));
  }

  jumpClock(): void {
    const ms = this.#random.int(-HOUR_MS, HOUR_MS);
    this.#world.jumpClock(Math.abs(ms) > 0.8 * HOUR_MS ? 4 * ms : ms);
  }

  makeUnavailable(): void {
    this.#world.makeUnavailable(this.#random.int(50, 15_000));
  }

  crash(): void {
    this.#world.crash('by the workload');
  }

  shutDown(): Promise<void> {
    return this.#world.shutDown(this.#random.choose([0, 100, 5_000, 30_000]));
  }

  /** Settles an attempt whose process died: the late result must change nothing (P6). */
  async lateResult(): Promise<void> {
    const { store, orphans, clock } = this.#world;
    // With several workers it is unknown when the claims of a dead worker are released; stopped workers cover this case.
    if (!store || orphans.length === 0 || this.#world.isShared) return;
    const orphan = this.#random.choose(orphans);
    const status = this.#random.choose([200, 500]);
    const decision = decide(orphan, { kind: 'responded', status, header: {}, body: new Uint8Array() }, clock.nowMs());
    if (decision.kind !== 'settle') return;
    const { settlement, follows } = decision;
    const { id } = orphan.message;
    await this.#world.call(
      this.#world.ledger.start([], {}),
      `late result ${id}`,
      async () => {
        const firstKey = await store.messages.reserveNumbers({ count: 2 * follows.length + 1 });
        const change = { ...settlement.change, follows: follows.map((each, nth) => asDue(each, firstKey + nth)) };
        return await store.messages.settle({ settlement: { ...settlement, change }, nowMs: clock.nowMs() });
      },
      (answer) => {
        if (answer.kind !== 'stale') this.#world.violate('P6', 'a result from a dead process was saved', id);
      },
    );
  }

  async #publish(
    commands: PublishCommand[],
    whose: Required<Pick<Publish, 'projectId' | 'cellId'>> | undefined = undefined,
  ): Promise<void> {
    const { engine, ledger } = this.#world;
    if (!engine) return;
    const items = commands.map((command) => {
      const ref = ledger.nextRef();
      const { callback, failureCallback } = command.options.settings;
      const bytesMax = callback || failureCallback ? SOURCE_BODY_BYTES_MAX : BODY_BYTES_MAX;
      return { ref, command: { ...command, body: bodyOf(ref, this.#random.int(8, bytesMax)) } };
    });
    const call = ledger.start(ledger.publishes, { ...whose, items });
    await this.#world.call(
      call,
      `publish of ${items.map((item) => item.ref).join(' ')}`,
      () =>
        engine.publish(
          whose?.projectId ?? PROJECT,
          items.map((item) => item.command),
        ),
      (published) => {
        call.items = items.map((item, index) => {
          const answer = published[index];
          if (!answer || answer === 'tooManyQueues') return { ...item, refused: true };
          this.#world.trace.add(`published ${answer.messageId} as ${item.ref}`);
          return { ...item, id: answer.messageId, deduplicated: answer.deduplicated };
        });
      },
    );
  }

  async #actOnDead(action: 'retry' | 'delete'): Promise<void> {
    const { engine, ledger } = this.#world;
    if (!engine) return;
    const page = { count: 100, order: 'latestFirst' as const };
    const list = await this.#readIfReachable('DLQ', () => engine.storeOf(PROJECT).dead.listDead({ filter: {}, page }));
    if (!list || list.items.length === 0 || !this.#world.runs(engine)) return;
    const draws = Array.from({ length: this.#random.int(1, 3) }, () => this.#random.choose(list.items).dlqId);
    const dlqIds = [...new Set(draws)];
    const call = ledger.start(ledger.deadCalls, { action, dlqIds });
    if (action === 'delete') {
      return await this.#world.call(
        call,
        `delete of ${dlqIds.join(' ')}`,
        () => engine.storeOf(PROJECT).dead.deleteDead({ dlqIds }),
        () => {},
      );
    }
    const override = this.#random.chance(0.3) ? { maxRetries: 1 } : {};
    call.override = override;
    await this.#world.call(
      call,
      `retry of ${dlqIds.join(' ')}`,
      () => engine.retryDead(PROJECT, dlqIds, override),
      (ids) => {
        if (ids) call.ids = ids;
        else call.missing = true;
      },
    );
  }

  #command(wish: { url?: string; lanes?: Lanes; atOnce?: boolean } = {}): PublishCommand {
    const random = this.#random;
    const settings: PublishCommand['options']['settings'] = {
      dialect: 'upstash',
      maxRetries: random.int(0, 5),
      labels: random.chance(0.3) ? [random.choose(LABELS)] : [],
      ...(wish.lanes ?? this.#lanes.lanesOfMessage()),
    };
    if (random.chance(0.9)) settings.retryDelayExpression = random.choose(RETRY_DELAYS);
    if (random.chance(0.3)) settings.timeoutMs = random.int(100, 20_000);
    Object.assign(settings, this.#callbacks(1));
    const options: PublishCommand['options'] = { method: 'POST', header: {}, explicitHeader: {}, settings };
    // An enqueue states no delay (contract M 12.7).
    const isAtOnce = wish.atOnce || settings.queueName !== undefined;
    if (!isAtOnce && random.chance(0.25)) options.delayMs = random.int(1, 60_000);
    else if (!isAtOnce && random.chance(0.1)) {
      options.notBeforeMs = this.#world.clock.wallMs() + random.int(-60_000, 120_000);
    }
    if (random.chance(0.15)) options.deduplication = { by: 'id', id: `twin-${random.int(1, 6)}` };
    return { url: wish.url ?? this.#url(), body: new Uint8Array(), options };
  }

  /** Draws the callbacks of a message, often none, with callbacks of callbacks down to the third level. */
  #callbacks(depth: number): Pick<CallbackSettings, 'callback' | 'failureCallback'> {
    const random = this.#random;
    const callbacks: Pick<CallbackSettings, 'callback' | 'failureCallback'> = {};
    if (depth > 3) return callbacks;
    for (const kind of ['callback', 'failureCallback'] as const) {
      if (!random.chance(0.2)) continue;
      const url = `${this.#url()}?${kind}`;
      const settings: CallbackSettings = { url, method: 'POST', header: {}, ...this.#callbacks(depth + 1) };
      if (random.chance(0.7)) settings.maxRetries = random.int(0, 2);
      if (random.chance(0.9)) settings.retryDelayExpression = random.choose(RETRY_DELAYS);
      if (random.chance(0.2)) settings.labels = [random.choose(LABELS)];
      callbacks[kind] = settings;
    }
    return callbacks;
  }

  #url(): string {
    const origin = this.#random.chance(0.3) ? HEALTHY_ORIGIN : this.#random.choose(MOODY_ORIGINS);
    return `${origin}/hook`;
  }

  #setMoods(): void {
    this.#world.network.setEndpoint(HEALTHY_ORIGIN, healthy(this.#random.fork()));
    this.#world.network.setEndpoint(OTHERS_ORIGIN, () => ({ kind: 'answer', status: 200, afterMs: 5 }));
    for (const origin of MOODY_ORIGINS) this.#setMood(origin);
  }

  #setMood(origin: string): void {
    const { mood, endpoint } = moody(this.#random, this.#world.clock);
    this.#world.trace.add(`${origin} is ${mood}`);
    this.#world.network.setEndpoint(origin, endpoint);
  }

  async #pages<T>(
    list: (page: PageRequest) => Promise<{ items: T[]; cursor?: string }>,
    order: PageRequest['order'],
  ): Promise<T[]> {
    const items: T[] = [];
    const count = this.#random.int(3, 60);
    let page: PageRequest = { count, order };
    for (;;) {
      const answer = await list(page);
      items.push(...answer.items);
      if (answer.cursor === undefined) return items;
      page = { count, order, cursor: answer.cursor };
      await this.#world.clock.delay(this.#random.int(0, 20));
    }
  }

  /** The result of a read, or `undefined` while the database is unreachable. */
  async #readIfReachable<T>(what: string, read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof StoreUnavailable))
        this.#world.violate('P11', `the ${what} cannot be read: ${String(error)}`);
      return undefined;
    }
  }

  /** Checks that every worker finds the log of an accepted message, whatever it knows of moves. */
  async findAccepted(): Promise<void> {
    const { engine, ledger } = this.#world;
    const young = ledger.acknowledgedIds().slice(-20);
    if (!engine || young.length === 0) return;
    const id = this.#random.choose(young);
    const page = { count: 1, order: 'latestFirst' as const };
    const found = await this.#readIfReachable(`log of ${id}`, () =>
      engine.storeOf(PROJECT).logs.listLogs({ filter: { messageId: [id] }, page }),
    );
    if (found?.items.length === 0) this.#world.violate('P3', 'nothing is told of an accepted message', id);
  }

  /** Reads the names of all items at once, then page by page, then all at once again. */
  async #thrice<T>(
    list: (page: PageRequest) => Promise<Page<T>>,
    order: PageRequest['order'],
    name: (item: T) => string,
  ): Promise<[string[], string[], string[]]> {
    const before = (await list({ count: 100_000, order })).items.map(name);
    const paged = (await this.#pages(list, order)).map(name);
    const after = (await list({ count: 100_000, order })).items.map(name);
    return [before, paged, after];
  }

  #compare(what: string, before: string[], paged: string[], after: string[]): void {
    const [had, got, have] = [before, paged, after].map(countEach) as [Counts, Counts, Counts];
    for (const [name, count] of had) {
      if ((got.get(name) ?? 0) < count) this.#world.violate('P3', `paging skipped the ${what} ${name}`);
    }
    for (const [name, count] of got) {
      if (count > (have.get(name) ?? 0)) this.#world.violate('P3', `paging repeated the ${what} ${name}`);
    }
  }
}

/** The message that would follow from the result of a dead process if that result were saved. */
function asDue(followUp: FollowUp, key: MessageKey): NewMessage {
  const message = { ...followUp, key, id: mintMessageId(key, (count) => new Uint8Array(count)) };
  const events = [{ atMs: message.createdAtMs, state: 'CREATED' as const }];
  return { message, state: { kind: 'due', dueAtMs: message.notBeforeMs }, events };
}

type Lanes = Pick<PublishCommand['options']['settings'], 'queueName' | 'flowControl'>;

type Counts = Map<string, number>;

function countEach(names: string[]): Counts {
  const counts: Counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function nameOf({ message, state, atMs }: LogEntry): string {
  return `${message.id} ${state} ${atMs}`;
}
