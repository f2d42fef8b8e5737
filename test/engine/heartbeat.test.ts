/** When a worker sends heartbeats, how it reacts to their results, and when it stops by itself. */

import { describe, expect, test } from 'vitest';
import type { SharedAccounts } from '../../src/engine/deps.ts';
import { type BacklogKey, backlogKey } from '../../src/engine/lanes/backlog-key.ts';
import type { ClaimRef, ClaimToken, Millis, ProjectId, WorkerId } from '../../src/engine/model.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { DatabaseClock } from '../../src/engine/workers/database-clock.ts';
import { Heartbeat, type HeartbeatListeners } from '../../src/engine/workers/heartbeat.ts';
import { ProjectFence } from '../../src/engine/workers/project-fence.ts';
import type { HeartbeatResponse, WorkerState } from '../../src/engine/workers/store.ts';
import type { Store } from '../../src/store/store.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const TIMEOUT_MS = 15_000;
const FENCE_MS = 12_000;
const QUIET: Omit<HeartbeatResponse, 'wallMs'> = {
  leadMs: 0,
  wasKnown: true,
  here: [],
  hasLate: false,
  others: [],
  nextDueAtMs: undefined,
  nextScheduleAtMs: undefined,
  nextWaiterAtMs: undefined,
  hasBacklogs: false,
  hasClaims: false,
  hasEndedRun: false,
  accountsVersion: 1,
};

/** The part of a store that the heartbeat uses. */
class FakeWorkers implements Omit<Store['workers'], 'workersWithOldAccounts'> {
  readonly workers = this;
  readonly messages = this;
  /** The results of the next heartbeats. */
  nextAnswer: Partial<HeartbeatResponse> = {};
  refuses = false;
  /** Whether claims are of a project that is being moved. */
  refusesReleases = false;
  /** The duration of a heartbeat. */
  answerMs = 0;
  late: WorkerId[] = [];
  orphans: ClaimRef[] = [];
  own: ClaimRef[] = [];
  backlogs: BacklogKey[] = [];
  /** Messages that wait for a former limit of their project. */
  held = 0;
  /** The number of messages per command. */
  readonly backlogsAskedFor: number[] = [];
  /** The duration of a read of backlogs. */
  backlogAnswerMs = 0;
  /** For claims and backlogs. */
  reads = 0;
  readonly heartbeats: { atMs: Millis; isLeaving: boolean; accountsVersion: number; projects: readonly ProjectId[] }[] =
    [];
  readonly released: ClaimToken[] = [];
  readonly left: WorkerId[] = [];
  readonly #clock: SimulatedClock;

  constructor(clock: SimulatedClock) {
    this.#clock = clock;
  }

  async heartbeat({ isLeaving, accountsVersion, projects = [] }: WorkerState): Promise<HeartbeatResponse> {
    this.heartbeats.push({ atMs: this.#clock.elapsedMs, isLeaving, accountsVersion, projects });
    const wallMs = this.#clock.wallMs();
    if (this.answerMs > 0) await this.#clock.delay(this.answerMs);
    if (this.refuses) throw new StoreUnavailable('gone');
    const hasClaims = this.own.length > 0 || this.orphans.length > 0;
    return { ...QUIET, wallMs, hasBacklogs: this.backlogs.length > 0, hasClaims, ...this.nextAnswer };
  }

  async expireWorkers(): Promise<WorkerId[]> {
    return this.late.splice(0);
  }

  async orphanedClaims({ limit }: { limit: number }): Promise<ClaimRef[]> {
    this.reads += 1;
    return this.orphans.slice(0, limit);
  }

  async claimsOf(): Promise<ClaimRef[]> {
    this.reads += 1;
    return this.own;
  }

  async leave({ worker }: { worker: WorkerId }): Promise<void> {
    if (this.answerMs > 0) await this.#clock.delay(this.answerMs);
    this.left.push(worker);
  }

  async release({ claims }: { claims: ClaimRef[] }): Promise<void> {
    if (this.refusesReleases) throw new StoreUnavailable('on the move');
    this.released.push(...claims.map(({ claimToken }) => claimToken));
    this.orphans = this.orphans.filter((orphan) => !claims.includes(orphan));
    this.own = this.own.filter((own) => !claims.includes(own));
  }

  async releaseUnlimited(): Promise<number> {
    const sent = Math.min(this.held, 2);
    this.held -= sent;
    return sent;
  }

  async waitingBacklogs({ after, limit }: { after: BacklogKey | undefined; limit: number }): Promise<BacklogKey[]> {
    this.reads += 1;
    this.backlogsAskedFor.push(limit);
    if (this.backlogAnswerMs > 0) await this.#clock.delay(this.backlogAnswerMs);
    return this.backlogs.filter((backlog) => backlog > (after ?? '')).slice(0, limit);
  }
}

/** Reads the accounts of the store. */
class FakeAccounts implements SharedAccounts {
  version = 1;
  refreshes = 0;
  /** The time until which its accounts are confirmed. */
  holdsUntilMs = -Infinity;
  /** The reason for which its accounts are unknown. */
  unknown: string | undefined;
  readonly #store: FakeWorkers;

  constructor(store: FakeWorkers) {
    this.#store = store;
  }

  async refresh(): Promise<void> {
    this.refreshes += 1;
    this.version = this.#store.nextAnswer.accountsVersion ?? QUIET.accountsVersion;
  }

  noteNewest(version: number, untilMs: Millis): void {
    if (version === this.version) this.holdsUntilMs = untilMs;
  }

  noteUnknown({ message }: Error): void {
    this.unknown = message;
  }
}

interface Bench {
  accounts: FakeAccounts;
  clock: SimulatedClock;
  store: FakeWorkers;
  heartbeat: Heartbeat;
  /** The notifications of the rest of the worker, in order. */
  heard: string[];
  /** The tokens that the worker knows. */
  held: Set<ClaimToken>;
  refreshes: () => number;
}

async function bench(
  prepare: (store: FakeWorkers) => void = () => {},
  clock: SimulatedClock = new SimulatedClock(),
): Promise<Bench> {
  const store = new FakeWorkers(clock);
  const heard: string[] = [];
  const held = new Set<ClaimToken>();
  const accounts = new FakeAccounts(store);
  const note = (event: string) => void heard.push(event);
  const log = { debug: note, info: note, warn: note, error: note };
  const projects = new ProjectFence(clock, log, FENCE_MS, String);
  prepare(store);
  const heartbeat = new Heartbeat(
    { store, randomness: new SeededRandom(1), log, worker: 'me' },
    { clock: new DatabaseClock(clock), timeoutMs: TIMEOUT_MS, accounts, projects },
  );
  const dispatcher: HeartbeatListeners['dispatcher'] = {
    hasClaim: (token) => held.has(token),
    countOf: () => 1,
    interrupt: (projectId) => note(projectId === undefined ? 'interrupt' : `interrupt of ${projectId}`),
    noteDue: (atMs) => note(`due ${atMs}`),
    noteWaitingBacklog: (origin) => note(`waiting ${origin}`),
    wake: () => note('wake'),
  };
  await heartbeat.initialize();
  heartbeat.start({
    dispatcher,
    noteSchedule: (atMs) => note(`schedule ${atMs}`),
    noteDeadline: (atMs) => note(`deadline ${atMs}`),
    noteEndedRun: () => note('ending'),
    noteExpiredWorker: () => note('death'),
  });
  return { accounts, clock, store, heartbeat, heard, held, refreshes: () => accounts.refreshes };
}

/** `count` backlogs, in the order of their names. */
function backlogs(count: number): BacklogKey[] {
  return Array.from({ length: count }, (_, index) => backlogKey(1, `https://${1_000 + index}.example`));
}

function backlogsOf(heard: readonly string[]): string[] {
  return heard.filter((event) => event.startsWith('waiting ')).map((event) => event.slice('waiting '.length));
}

function claim(claimToken: ClaimToken): ClaimRef {
  return { key: claimToken + 1_000, projectId: 1, claimToken };
}

describe('its heartbeats', () => {
  test('are sent at least three times within the time after which the worker would expire', async () => {
    const { clock, store, heartbeat } = await bench();
    await clock.advanceBy(10 * TIMEOUT_MS);
    const pauses = store.heartbeats.slice(1).map(({ atMs }, index) => atMs - (store.heartbeats[index]?.atMs ?? 0));
    expect(pauses.length).toBeGreaterThanOrEqual(30);
    for (const pause of pauses) expect(pause).toBeLessThanOrEqual(TIMEOUT_MS / 3 + 1);
    expect(new Set(pauses).size).toBeGreaterThan(3); // not in step with those of others
    await heartbeat.stop();
  });

  test('are retried soon after one that failed', async () => {
    const { clock, store } = await bench();
    store.refuses = true;
    await clock.advanceBy(TIMEOUT_MS / 3 + 3_500);
    expect(store.heartbeats.length).toBeGreaterThanOrEqual(4);
  });

  test('return the next due times, and notify callers that wait for the fence to open', async () => {
    const { clock, store, heard } = await bench();
    store.nextAnswer = { nextDueAtMs: 11, nextScheduleAtMs: 22, nextWaiterAtMs: 33, hasEndedRun: true };
    await clock.advanceBy(TIMEOUT_MS / 3);
    expect(heard).toEqual(['due 11', 'schedule 22', 'deadline 33', 'ending']);
    store.nextAnswer = {};
    await clock.advanceBy(TIMEOUT_MS / 3);
    expect(heard.slice(4)).toEqual(['wake']);
  });

  test('return the time, again at the start while the responses are slow', async () => {
    const quick = await bench();
    expect(quick.store.heartbeats.length).toBe(1);
    const clock = new SimulatedClock();
    const slow = bench((store) => {
      store.answerMs = 2_000;
    }, clock);
    await clock.advanceBy(60_000);
    expect((await slow).store.heartbeats.slice(0, 3).map(({ atMs }) => atMs)).toEqual([0, 2_000, 4_000]);
  });

  test('end with the worker, which reports that it leaves', async () => {
    const { clock, store, heartbeat } = await bench();
    await heartbeat.stop();
    expect(store.left).toEqual(['me']);
    const { length } = store.heartbeats;
    await clock.advanceBy(10 * TIMEOUT_MS);
    expect(store.heartbeats.length).toBe(length);
  });

  test('do not keep a worker from ending when the store does not respond', async () => {
    const { clock, store, heartbeat } = await bench();
    store.answerMs = 60_000;
    let hasEnded = false;
    void heartbeat.stop().then(() => {
      hasEnded = true;
    });
    await clock.advanceBy(1_000);
    expect(hasEnded).toBe(true);
  });

  test('report at once that the worker drains, so that others read its backlogs', async () => {
    const { clock, store, heartbeat } = await bench();
    heartbeat.noteDraining();
    await clock.advanceBy(1);
    expect(store.heartbeats.at(-1)).toMatchObject({ isLeaving: true });
  });
});

describe('its fence', () => {
  test('is open from the first heartbeat on, and stays open', async () => {
    const { clock, heartbeat, heard } = await bench();
    for (let passed = 0; passed < 20; passed += 1) {
      expect(heartbeat.fence.isClosed).toBe(false);
      await clock.advanceBy(TIMEOUT_MS / 2);
    }
    expect(heard).not.toContain('interrupt');
  });

  test('closes before others may let the worker expire, interrupts the attempts, and opens with the next heartbeat', async () => {
    const { clock, store, heartbeat, heard } = await bench();
    store.refuses = true;
    await clock.advanceBy(FENCE_MS);
    expect(heartbeat.fence.isClosed).toBe(false);
    await clock.advanceBy(2);
    expect(heartbeat.fence.isClosed).toBe(true);
    expect(heard.filter((event) => event === 'interrupt')).toHaveLength(1);
    store.refuses = false;
    await clock.advanceBy(1_100);
    expect(heartbeat.fence.isClosed).toBe(false);
    expect(heard.at(-1)).toBe('wake');
  });

  test('counts from the start of a heartbeat, not from its response', async () => {
    const { clock, store, heartbeat } = await bench();
    store.answerMs = 4_000;
    await clock.runUntil(() => store.heartbeats.length === 2, TIMEOUT_MS);
    const begunAtMs = clock.elapsedMs;
    await clock.advanceBy(4_000);
    store.refuses = true;
    await clock.advanceTo(begunAtMs + FENCE_MS + 1);
    expect(heartbeat.fence.isClosed).toBe(true);
  });

  test('interrupts the attempts, too, when the worker learns that it has expired', async () => {
    const { clock, store, heard } = await bench();
    store.nextAnswer = { wasKnown: false };
    await clock.advanceBy(TIMEOUT_MS / 3);
    expect(heard).toContain('declared_dead');
    expect(heard).toContain('interrupt');
  });
});

test('the attempts of a project that its heartbeats no longer find are interrupted, while its fence is open', async () => {
  const { clock, store, heartbeat, heard } = await bench();
  expect(heartbeat.fence.mayStart(7, clock.elapsedMs)).toBe(true);
  await clock.advanceBy(FENCE_MS + 1);
  expect(store.heartbeats.at(-1)?.projects).toEqual([7]);
  expect(heard).toContain('interrupt of 7');
  expect(heard).not.toContain('interrupt');
  expect(heartbeat.fence.isClosed).toBe(false);
  await heartbeat.stop();
  expect(clock.nextTimerAtMs).toBeUndefined();
});

test('a claim counts from the heartbeat before it', async () => {
  const { clock, store, heartbeat, heard } = await bench();
  store.nextAnswer = { here: [7] };
  await clock.advanceBy(TIMEOUT_MS / 3);
  const latestAtMs = store.heartbeats.at(-1)?.atMs ?? 0;
  store.refuses = true;
  await clock.advanceTo(latestAtMs + FENCE_MS - 1);
  expect(heartbeat.fence.mayStart(7, clock.elapsedMs)).toBe(true);
  await clock.advanceBy(2);
  expect(heard).toContain('interrupt of 7');
});

describe('claims that others have left', () => {
  test('are released at the start, before anything is claimed', async () => {
    const { store } = await bench((each) => {
      each.orphans = Array.from({ length: 450 }, (_, index) => claim(index));
    });
    expect(store.released).toHaveLength(450);
  });

  test('are released from a limit that no longer exists, at the start and when a worker is late that may have had it', async () => {
    const { store, clock } = await bench((prepared) => {
      prepared.held = 5;
    });
    expect(store.held).toBe(0);
    store.held = 3;
    store.late = ['dead'];
    store.nextAnswer = { hasLate: true };
    await clock.advanceBy(TIMEOUT_MS);
    expect(store.held).toBe(0);
  });

  test('are released when a heartbeat returns a late worker, and its backlogs are read', async () => {
    const { clock, store, heard } = await bench();
    store.nextAnswer = { hasLate: true };
    store.late = ['dead'];
    store.orphans = [claim(7)];
    store.backlogs = ['1 https://a.example'];
    await clock.advanceBy(TIMEOUT_MS / 3);
    expect(store.released).toEqual([7]);
    expect(heard).toContain('worker_gone');
    expect(heard).toContain('waiting 1 https://a.example');
  });

  test('are not looked up while no message is claimed and no backlog has messages', async () => {
    const { clock, store } = await bench();
    const { reads } = store;
    await clock.advanceBy(10 * TIMEOUT_MS);
    expect(store.reads).toBe(reads);
  });

  test('have their backlogs read by every worker that misses one, whoever has let it expire', async () => {
    const { clock, store, heard } = await bench((each) => {
      each.nextAnswer = { others: ['other'] };
    });
    store.nextAnswer = { others: [] };
    store.backlogs = backlogs(1_200);
    await clock.advanceBy(TIMEOUT_MS / 3);
    expect(backlogsOf(heard)).toEqual(store.backlogs);
  });

  test('have their backlogs read page by page beside the heartbeats, however many they are', async () => {
    const { clock, store, heartbeat, heard } = await bench((each) => {
      each.nextAnswer = { others: ['other'] };
    });
    store.nextAnswer = { others: [] };
    store.backlogs = backlogs(8_500);
    store.backlogAnswerMs = TIMEOUT_MS / 2;
    await clock.runUntil(() => store.backlogsAskedFor.length > 0, TIMEOUT_MS);
    const sent = store.heartbeats.length;
    await clock.runUntil(() => backlogsOf(heard).length === 8_500, 4 * TIMEOUT_MS);
    expect(backlogsOf(heard)).toEqual(store.backlogs);
    expect(Math.max(...store.backlogsAskedFor)).toBeLessThanOrEqual(2_000);
    expect(store.heartbeats.length - sent).toBeGreaterThanOrEqual(7);
    await heartbeat.stop();
  });

  test('do not keep a worker from ending by the backlogs that are left to read', async () => {
    const { clock, store, heartbeat } = await bench();
    heartbeat.noteUnreadBacklogs();
    store.backlogs = backlogs(8_500);
    store.backlogAnswerMs = 100;
    await clock.runUntil(() => store.backlogsAskedFor.length > 0, TIMEOUT_MS);
    const stopping = heartbeat.stop();
    await clock.advanceBy(150);
    await stopping;
    expect([store.left, store.backlogsAskedFor.length]).toEqual([['me'], 1]);
  });

  test('are released by the worker that lets it expire', async () => {
    const { clock, store, heard } = await bench();
    store.nextAnswer = { hasLate: true };
    await clock.advanceBy(TIMEOUT_MS / 3);
    expect(heard).not.toContain('death'); // another one was faster
    store.late = ['dead'];
    await clock.advanceBy(TIMEOUT_MS / 3);
    expect(heard.filter((event) => event === 'death')).toHaveLength(1);
  });

  test('are released, too, when they were saved after their worker had expired', async () => {
    const { clock, store } = await bench();
    store.orphans = [claim(9)];
    await clock.advanceBy(TIMEOUT_MS + 1_000);
    expect(store.released).toEqual([9]);
  });
});

describe('backlogs that others fill', () => {
  test('are read with each heartbeat, since the worker that filled one may have no capacity for it', async () => {
    const { clock, store, heard } = await bench();
    store.backlogs = backlogs(2);
    await clock.advanceBy(TIMEOUT_MS / 3);
    expect(backlogsOf(heard)).toEqual(store.backlogs);
  });

  test('are read while a remaining claim cannot be released', async () => {
    const { clock, store, heartbeat, heard } = await bench();
    store.own = [{ key: 1, projectId: 1, claimToken: 7 }];
    store.refusesReleases = true;
    heartbeat.noteCommitUnknown();
    await clock.runUntil(() => heard.includes('rescue_failed'), 4 * TIMEOUT_MS);
    store.backlogs = backlogs(2);
    await clock.runUntil(() => backlogsOf(heard).length > 0, TIMEOUT_MS);
    expect(backlogsOf(heard)).toEqual(store.backlogs);
  });

  test('are all read after the next heartbeat when some were missed at the start', async () => {
    const { clock, store, heartbeat, heard } = await bench();
    heartbeat.noteUnreadBacklogs();
    store.backlogs = backlogs(2_500);
    await clock.advanceBy(TIMEOUT_MS / 3);
    expect(backlogsOf(heard)).toEqual(store.backlogs);
  });

  test('are read page by page when they are many, then from the first one again', async () => {
    const { clock, store, heard } = await bench();
    store.backlogs = backlogs(700);
    await clock.runUntil(() => backlogsOf(heard).length > 0, TIMEOUT_MS);
    expect(backlogsOf(heard)).toEqual(store.backlogs.slice(0, 500));
    await clock.runUntil(() => backlogsOf(heard).length > 500, TIMEOUT_MS);
    expect(backlogsOf(heard)).toEqual(store.backlogs);
    await clock.runUntil(() => backlogsOf(heard).length > 700, TIMEOUT_MS);
    expect(backlogsOf(heard).slice(700)).toEqual(store.backlogs.slice(0, 500));
  });
});

describe('claims in its own name', () => {
  test('that it does not know are released when they are found a second time', async () => {
    const { clock, store, held, heartbeat } = await bench();
    store.own = [claim(1), claim(2)];
    held.add(1);
    heartbeat.noteCommitUnknown();
    await clock.advanceBy(TIMEOUT_MS / 3);
    expect(store.released).toEqual([]);
    await clock.advanceBy(TIMEOUT_MS / 3);
    expect(store.released).toEqual([2]);
  });

  test('are looked up every few heartbeats, with or without doubts', async () => {
    const { clock, store } = await bench();
    store.own = [claim(1)];
    await clock.advanceBy(2 * TIMEOUT_MS);
    expect(store.released).toEqual([1]);
  });

  test('are kept while it has just interrupted their attempts, or learns of them', async () => {
    const { clock, store, held, heartbeat } = await bench();
    store.own = [claim(1)];
    heartbeat.noteCommitUnknown();
    await clock.advanceBy(TIMEOUT_MS / 3);
    held.add(1);
    await clock.advanceBy(2 * TIMEOUT_MS);
    expect(store.released).toEqual([]);
  });

  test('may have unknown backlogs, when something may have been saved after all', async () => {
    const { clock, store, heard, heartbeat } = await bench();
    store.backlogs = ['1 https://a.example'];
    heartbeat.noteCommitUnknown();
    await clock.advanceBy(TIMEOUT_MS / 3);
    expect(heard).toContain('waiting 1 https://a.example');
  });
});

describe('accounts', () => {
  test('are read again once they have changed, and only then', async () => {
    const { clock, store, refreshes } = await bench();
    await clock.advanceBy(2 * TIMEOUT_MS);
    expect(refreshes()).toBe(0);
    store.nextAnswer = { accountsVersion: 2 };
    await clock.advanceBy(2 * TIMEOUT_MS);
    expect(refreshes()).toBe(1);
  });

  test('that changed before the first heartbeat are read before any request is admitted', async () => {
    const { store, refreshes } = await bench((before) => {
      before.nextAnswer = { accountsVersion: 2 };
    });
    expect(refreshes()).toBe(1);
    expect(store.heartbeats.map(({ accountsVersion }) => accountsVersion)).toEqual([1, 2]);
  });

  test('are read and confirmed at once when other workers notify of a change', async () => {
    const { clock, store, heartbeat } = await bench();
    const begun = store.heartbeats.length;
    store.nextAnswer = { accountsVersion: 2 };
    heartbeat.noteAccounts();
    await clock.advanceBy(1);
    expect(store.heartbeats.slice(begun).map(({ accountsVersion }) => accountsVersion)).toEqual([1, 2]);
  });

  test('that change during a heartbeat are confirmed by another one right after it', async () => {
    const { clock, store, heartbeat } = await bench();
    const begun = store.heartbeats.length;
    store.answerMs = 10;
    heartbeat.noteAccounts();
    await clock.advanceBy(1);
    heartbeat.noteAccounts();
    await clock.advanceBy(25);
    expect(store.heartbeats.length).toBe(begun + 2);
  });

  test('are valid from the start of a heartbeat that confirms them until the fence closes', async () => {
    const { clock, store, accounts } = await bench();
    store.answerMs = 400;
    await clock.advanceBy(TIMEOUT_MS);
    const { atMs } = store.heartbeats.at(-1) ?? { atMs: Number.NaN };
    expect(accounts.holdsUntilMs).toBe(atMs + FENCE_MS);
  });

  test('are unknown when no heartbeat succeeds', async () => {
    const { clock, store, accounts } = await bench();
    store.refuses = true;
    await clock.advanceBy(TIMEOUT_MS);
    expect(accounts.unknown).toBe('gone');
  });
});
