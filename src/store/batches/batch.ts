/** Runs the commands of many callers in one transaction, with a result for each. */
import type { BacklogKey } from '../../engine/lanes/backlog-key.ts';
import type { ClaimToken, ProjectId } from '../../engine/model.ts';
import { CommitUnknown, StoreFull, StoreUnavailable } from '../../engine/store-errors.ts';
import type { StoreLimits } from '../../engine/stores.ts';
import {
  type Driver,
  LockNotFree,
  StatementRefused,
  StoreFatal,
  type Transaction,
  type TransactionOptions,
} from '../driver.ts';
import { accountsVersion } from '../operations/accounts/version.ts';
import { type Result, runAll, type WriteCommand } from '../operations/all.ts';
import { DueTimes, earlier } from '../operations/due-times.ts';
import { ALL_PROJECTS } from '../operations/locking/locked-projects.ts';
import {
  type BatchLocks,
  type BlockedResult,
  lockFor,
  NO_SUSPECTS,
  type Suspects,
} from '../operations/locking/locks.ts';
import {
  ALL_HERE,
  type AwayResult,
  BatchPlacementCheck,
  type PlacementCheck,
  ProjectsNotHere,
} from '../operations/locking/placement.ts';
import { LogWriter, TooFewNumbers, type WriteContext } from '../operations/logs/log-writer.ts';

const NO_LOCKS: BatchLocks = { locked: ALL_PROJECTS, blocked: new Map() };

const NONE_RESERVED: WriteContext['reserved'] = new Map();

/** The result of one command. */
export type WriteResult =
  | { kind: 'result'; result: Result }
  /** Nothing was saved, or the outcome is unknown. The caller may try again. See `CommitUnknown` and `StoreFull`. */
  | {
      kind: 'unavailable';
      reason: string;
      /** See `StoreUnavailable`. */
      detail?: string | undefined;
      isCommitUnknown: boolean;
      isFull?: boolean;
    }
  /** Nothing was saved: another worker has this project locked, perhaps for long. */
  | BlockedResult
  /** Nothing was saved: see `ProjectAway`. */
  | AwayResult
  /** Nothing was saved: see `AccountsChanged`. */
  | { kind: 'accountsChanged' }
  /** This command cannot be saved. */
  | { kind: 'rejected'; reason: string };

/** The results of a batch, and the changes that workers must be notified about. */
export interface BatchOutcome {
  /** One result per command. */
  results: WriteResult[];
  /** The earliest time at which a lane that this batch changed releases a message; null if no lane does. */
  dueAtMs: number | null;
  /** The earliest due time of messages that this batch left unclaimed, or null if none. Never after `dueAtMs`. */
  othersDueAtMs: number | null;
  /** The endpoint backlogs to which this batch has added messages. */
  waitingBacklogs: BacklogKey[];
  /** Claims whose messages this batch cancelled: their attempts must end. */
  cancelledClaims: ClaimToken[];
}

/**
 * Lock timeout of a batch. It is many times the duration of a batch, but short, because the other commands of the batch
 * wait too without needing the lock.
 */
const LOCK_WAIT_MS = 100;

const SUSPECT_ALL: Suspects = { has: () => true };

const UNLIMITED: StoreLimits = { queuesMax: 0, parallelismMax: 0, messagesPerDayMax: 0, journalBytesMax: 0 };

const NONE: ReadonlySet<ProjectId> = new Set();

/** How a batch treats locked projects and projects that are not here. */
interface BatchPolicy {
  suspects: Suspects;
  /** Projects that were not here in an earlier try of this batch. This try claims no messages of these projects. */
  avoid: ReadonlySet<ProjectId>;
  /** Whether to check that the projects are here before the first write, which costs a round trip. */
  checksPlacementFirst: boolean;
}

/** Runs the commands of one database in batches. */
export class BatchRunner {
  readonly #driver: Driver;
  readonly #limits: StoreLimits;
  readonly #logs: LogWriter;
  #isGuarded = false;

  constructor(driver: Driver, limits: StoreLimits = UNLIMITED) {
    this.#driver = driver;
    this.#limits = limits;
    this.#logs = new LogWriter(driver.dialect);
  }

  /** Whether the database is one of several cells, so that its projects may move to another cell. */
  get isGuarded(): boolean {
    return this.#isGuarded;
  }

  /** From now on, commands of projects that are not here save nothing (operations/locking/placement.ts). */
  guardProjects(): void {
    this.#isGuarded = true;
  }

  /**
   * Resolves after the commit. The result of a command is `blocked` if the command waited too long for the lock of its
   * project. For projects in `suspects`, the batch does not wait: if another transaction has the lock, the command is
   * blocked at once. Throws only `StoreFatal`.
   */
  run(commands: readonly WriteCommand[], suspects: Suspects = NO_SUSPECTS): Promise<BatchOutcome> {
    return this.#run(commands, { suspects, avoid: NONE, checksPlacementFirst: false });
  }

  async #run(commands: readonly WriteCommand[], policy: BatchPolicy): Promise<BatchOutcome> {
    const { suspects, avoid, checksPlacementFirst } = policy;
    const due = new DueTimes();
    try {
      const reserved = this.#driver.dialect.manyWriters ? await this.#reserveFor(commands) : NONE_RESERVED;
      const options = suspects === SUSPECT_ALL ? {} : { lockWaitMs: LOCK_WAIT_MS };
      const work = (tx: Transaction) => this.#runIn({ tx, due, reserved }, commands, policy);
      const results = await this.#withNumbers(work, options);
      const { earliestMs: dueAtMs, earliestForOthersMs: othersDueAtMs, waitingBacklogs, cancelledClaims } = due;
      return { results, dueAtMs, othersDueAtMs, waitingBacklogs, cancelledClaims };
    } catch (error) {
      this.#logs.forget();
      if (error instanceof StoreFatal) throw error;
      if (error instanceof AccountsOutdated) return this.#runWithoutOutdated(error.version, commands, policy);
      if (error instanceof ProjectsNotHere) {
        const refused = error.refused as ReadonlyMap<WriteCommand, WriteResult>;
        return this.#runWithout(refused, commands, { ...policy, avoid: new Set([...avoid, ...error.projects]) });
      }
      // The database does not report which lock was not free, so the next try takes each lock only if it is free.
      if (error instanceof LockNotFree && suspects !== SUSPECT_ALL)
        return this.#run(commands, { ...policy, suspects: SUSPECT_ALL });
      const mayConcernOneCommand = error instanceof StatementRefused && commands.length > 1;
      if (error instanceof StoreUnavailable && !mayConcernOneCommand) {
        const result = unavailableFor(error);
        return nothingDone(commands.map(() => result));
      }
      // Rows of a project that is not here may conflict with a command, for example while a move copies them.
      if (this.#isGuarded && !checksPlacementFirst)
        return this.#run(commands, { ...policy, checksPlacementFirst: true });
      if (commands.length === 1) {
        return nothingDone([{ kind: 'rejected', reason: error instanceof Error ? error.message : String(error) }]);
      }
      return this.#runEach(commands, policy);
    }
  }

  async #runIn(
    parts: Pick<WriteContext, 'tx' | 'due' | 'reserved'>,
    commands: readonly WriteCommand[],
    policy: BatchPolicy,
  ): Promise<WriteResult[]> {
    const { tx } = parts;
    const { unpartitionedLogs } = this.#driver.dialect;
    const newest = newestAccounts(tx, commands);
    const { suspects, avoid, checksPlacementFirst } = policy;
    const placements = this.#isGuarded
      ? new BatchPlacementCheck(tx, { avoid, waitsForLocks: suspects === NO_SUSPECTS })
      : undefined;
    const { locked, blocked } = await this.#lock(tx, commands, policy, placements);
    if (checksPlacementFirst) await placements?.check();
    const context = {
      ...parts,
      limits: this.#limits,
      logs: this.#logs,
      locked,
      unpartitionedLogs,
      placement: placements ?? ALL_HERE,
    };
    const results = await runExcept(blocked, commands, (free) => runAll(context, free));
    await placements?.check();
    if ((await newest) > oldestAccounts(commands)) throw new AccountsOutdated(await newest);
    return results;
  }

  async #lock(
    tx: Transaction,
    commands: readonly WriteCommand[],
    { suspects }: BatchPolicy,
    placements: PlacementCheck | undefined,
  ): Promise<BatchLocks> {
    const { manyWriters } = this.#driver.dialect;
    if (!manyWriters && placements === undefined) return NO_LOCKS;
    const locks = await lockFor(tx, commands, this.#limits, suspects, placements);
    if (manyWriters || placements === undefined) return locks;
    const moving = await placements.moving();
    return { ...locks, locked: { has: (projectId) => !moving.has(projectId), size: ALL_PROJECTS.size } };
  }

  /** Runs the batch without the commands whose callers were admitted with outdated accounts. */
  #runWithoutOutdated(version: number, commands: readonly WriteCommand[], policy: BatchPolicy): Promise<BatchOutcome> {
    const outdated = new Map<WriteCommand, WriteResult>();
    for (const command of commands) {
      if (oldestAccounts([command]) < version) outdated.set(command, { kind: 'accountsChanged' });
    }
    return this.#runWithout(outdated, commands, policy);
  }

  /** Runs the commands that are not in `refused`. */
  async #runWithout(
    refused: ReadonlyMap<WriteCommand, WriteResult>,
    commands: readonly WriteCommand[],
    policy: BatchPolicy,
  ): Promise<BatchOutcome> {
    let outcome = nothingDone([]);
    const results = await runExcept(refused, commands, async (others) => {
      if (others.length > 0) outcome = await this.#run(others, policy);
      return outcome.results;
    });
    return { ...outcome, results };
  }

  /**
   * Reserves numbers in a separate transaction, because other batches would wait for the end of the batch's own
   * transaction. The reservation comes before the batch takes a connection: if each batch took two connections, batches
   * could deadlock when all connections are in use.
   */
  async #reserveFor(commands: readonly WriteCommand[]): Promise<WriteContext['reserved']> {
    const wanted = commands.flatMap((command) => (command.method === 'reserveNumbers' ? [command.args] : []));
    const total = wanted.reduce((sum, { count }) => sum + count, 0);
    if (total === 0) return NONE_RESERVED;
    const firsts = new Map<object, number>();
    let next = await this.#driver.transaction((tx) => tx.reserve('keys and tokens', total));
    for (const args of wanted) {
      firsts.set(args, next);
      next += args.count;
    }
    return firsts;
  }

  /** Retries the transaction when the reserved numbers of log entries are used up, about once per 100,000 entries. */
  async #withNumbers<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions): Promise<T> {
    while (true) {
      try {
        return await this.#driver.transaction(work, options);
      } catch (error) {
        if (!(error instanceof TooFewNumbers)) throw error;
        await this.#logs.reserve(this.#driver, error.needed);
      }
    }
  }

  /** Runs each command in its own transaction, so that only the faulty command fails. */
  async #runEach(commands: readonly WriteCommand[], policy: BatchPolicy): Promise<BatchOutcome> {
    const total = nothingDone([]);
    for (const command of commands) {
      const outcome = await this.#run([command], policy);
      total.results.push(...outcome.results);
      total.dueAtMs = earlier(total.dueAtMs, outcome.dueAtMs);
      total.othersDueAtMs = earlier(total.othersDueAtMs, outcome.othersDueAtMs);
      total.waitingBacklogs.push(...outcome.waitingBacklogs);
      total.cancelledClaims.push(...outcome.cancelledClaims);
    }
    return total;
  }
}

/** The accounts changed to `version` after some callers were admitted. The batch is retried without these callers. */
class AccountsOutdated extends Error {
  readonly version: number;

  constructor(version: number) {
    super('the accounts have changed');
    this.version = version;
  }
}

/** The oldest version of the accounts with which callers were admitted; `Infinity` if no command names a version. */
function oldestAccounts(commands: readonly WriteCommand[]): number {
  return commands.reduce((oldest, command) => {
    const version = command.method === 'accept' ? command.args.accountsVersion : undefined;
    return Math.min(oldest, version ?? Infinity);
  }, Infinity);
}

/** The current version of the accounts. The batch awaits the query only at its end, so no extra round trip is needed. */
function newestAccounts(tx: Transaction, commands: readonly WriteCommand[]): Promise<number> {
  const newest = oldestAccounts(commands) === Infinity ? Promise.resolve(0) : accountsVersion(tx);
  newest.catch(() => {}); // later statements fail too, and report the error
  return newest;
}

/** The results of all commands, in order: the results in `preset`, and the results of `work` for the other commands. */
async function runExcept(
  preset: ReadonlyMap<WriteCommand, WriteResult>,
  commands: readonly WriteCommand[],
  work: (others: WriteCommand[]) => Promise<WriteResult[]>,
): Promise<WriteResult[]> {
  const others = commands.filter((command) => !preset.has(command));
  const results = (await work(others)).values();
  return commands.map((command) => {
    const result = preset.get(command) ?? results.next().value;
    return result ?? { kind: 'rejected', reason: 'the store returned no result' };
  });
}

function unavailableFor(error: StoreUnavailable): WriteResult {
  return {
    kind: 'unavailable',
    reason: error.reason,
    detail: error.detail,
    isCommitUnknown: error instanceof CommitUnknown,
    isFull: error instanceof StoreFull,
  };
}

function nothingDone(results: WriteResult[]): BatchOutcome {
  return { results, dueAtMs: null, othersDueAtMs: null, waitingBacklogs: [], cancelledClaims: [] };
}
