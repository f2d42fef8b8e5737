/**
 * Defines an operation of the store with its traits, beside its SQL. The traits decide which commands share a batch
 * (batches/batch-queue.ts), what they lock (locking/locks.ts), and which thread reads (drivers/sqlite).
 */
import type { MessageKey, ProjectId } from '../../engine/model.ts';
import type { StoreLimits } from '../../engine/stores.ts';
import type { Queries } from '../driver.ts';
import type { WriteContext } from './logs/log-writer.ts';

/** The approximate cost of a command: the messages that it touches and the body bytes that it carries. */
export interface Weight {
  rows: number;
  bytes?: number;
}

/**
 * The class by which commands are ordered (batch-queue.ts). If an urgent command were late, other workers could expire
 * this worker, or all publishes of this worker would wait for a number.
 */
export type CommandClass = 'urgent' | 'onward' | 'accept';

/** What a command must lock where several transactions run at once, according to its arguments. */
export interface LockScope {
  projects?: Iterable<ProjectId>;
  /** Projects whose rows the command writes without a lock. Locked projects need not be repeated here. */
  writes?: Iterable<ProjectId>;
  /** Existing messages to change or remove. If messages share state, such as a lane, their projects are locked too. */
  messages?: readonly MessageKey[];
  schedules?: readonly number[];
  /** Finds the projects that the arguments do not name. */
  find?: (queries: Queries) => Promise<Iterable<ProjectId>>;
  /** The command skips projects that it cannot lock, instead of being blocked. */
  skipsLocked?: true;
}

export interface WriteTraits<Args> {
  /** Default: onward. */
  class: (args: Args) => CommandClass;
  /** Default: one row. */
  weight: (args: Args) => Weight;
  /** Default: the project with the `projectId` of the arguments, if the arguments have a `projectId`. */
  touches: (args: Args, limits: StoreLimits) => LockScope;
  /** The command may change tokens, or the keys with which requests are signed. Default: no. */
  changesAccounts: boolean;
}

/**
 * Converts values of the engine to plain rows and back, in the caller's thread. During a long list, `pause` lets other
 * work run. By default, values are not converted.
 */
export interface Codec<Args, Result, Input, Decoded> {
  readonly encode: ((input: Input, pause: Pause) => Args | Promise<Args>) | undefined;
  readonly decode: ((result: Result, args: Args, pause: Pause) => Decoded | Promise<Decoded>) | undefined;
}

export type Pause = () => Promise<void> | undefined;

/** A write in a transaction. Its arguments and its result are plain data that can pass to another thread. */
export type Write<Args, Result, Input = Args, Decoded = Result> = WriteTraits<Args> &
  Codec<Args, Result, Input, Decoded> & {
    readonly kind: 'single';
    (context: WriteContext, args: Args): Promise<Result>;
  };

/** A write that runs all its commands of a batch together, before other commands. The results are in the same order. */
export type MergedWrite<Args, Result, Input = Args, Decoded = Result> = WriteTraits<Args> &
  Codec<Args, Result, Input, Decoded> & {
    readonly kind: 'merged';
    (context: WriteContext, commands: readonly Args[]): Promise<Result[]>;
  };

/** A read on one snapshot, outside the writer's transactions. */
export type Read<Args, Result, Decoded = Result, Input = Args> = Codec<Args, Result, Input, Decoded> & {
  readonly kind: 'read';
  /** See `longRead`. */
  readonly isLong: boolean;
  /** Whether to read from the directory, because the project may live in another cell. */
  readonly readsDirectory: boolean;
  (queries: Queries, args: Args): Promise<Result>;
};

/** A long read of one window of a list. The caller gets a page, which may take several windows. */
export type PagedRead<Args, Result, Input, Item> = Omit<Read<Args, Result>, 'decode' | 'encode' | 'kind'> & {
  readonly kind: 'paged';
  readonly pages: Pages<Args, Result, Input, Item>;
  (queries: Queries, args: Args): Promise<Result>;
};

export interface Pages<Args, Result, Input, Item> {
  /** The arguments without the slice, for the first window (0) or a later one. */
  readonly encode: (input: Input, window: number) => Omit<Args, 'slice'>;
  readonly decode: (result: Result, args: Args, pause: Pause) => Item[] | Promise<Item[]>;
  readonly windowsMax?: number;
}

type NoArgs = Record<never, never>;

const DEFAULTS: WriteTraits<object> = {
  class: () => 'onward',
  weight: () => ({ rows: 1 }),
  touches: (args) => ('projectId' in args ? { projects: [args.projectId as ProjectId] } : {}),
  changesAccounts: false,
};

type RunOne<Args, Result> = (context: WriteContext, args: Args) => Promise<Result>;

type Encode<Args, Input> = (input: Input, pause: Pause) => Args | Promise<Args>;

type Decode<Args, Result, Decoded> = (result: Result, args: Args, pause: Pause) => Decoded | Promise<Decoded>;

/** Defines a write. Missing traits have the defaults of `WriteTraits`. */
export function write<Args extends object, Result>(run: RunOne<Args, Result>): Write<Args, Result>;
export function write<Args extends object, Result, Input = Args, Decoded = Result>(
  traits: Partial<WriteTraits<Args>>,
  run: RunOne<Args, Result>,
  encode?: Encode<Args, Input>,
  decode?: Decode<Args, Result, Decoded>,
): Write<Args, Result, Input, Decoded>;
export function write(
  first: RunOne<never, unknown> | Partial<WriteTraits<never>>,
  second?: RunOne<never, unknown>,
  encode?: Encode<never, never>,
  decode?: Decode<never, unknown, unknown>,
): Write<never, unknown, never, unknown> {
  const [traits, run] = typeof first === 'function' ? [{}, first] : [first, second as RunOne<never, unknown>];
  return Object.assign(run, { kind: 'single' as const, encode, decode, ...DEFAULTS, ...traits });
}

/** Defines a merged write. */
export function merged<Args extends object, Result, Input = Args, Decoded = Result>(
  traits: Partial<WriteTraits<Args>>,
  run: (context: WriteContext, commands: readonly Args[]) => Promise<Result[]>,
  encode?: Encode<Args, Input>,
  decode?: Decode<Args, Result, Decoded>,
): MergedWrite<Args, Result, Input, Decoded> {
  return Object.assign(run, { kind: 'merged' as const, encode, decode, ...DEFAULTS, ...traits });
}

type RunRead<Args, Result> = (queries: Queries, args: Args) => Promise<Result>;

/** Defines a read of one or two rows. */
export function read<Result, Args extends object = NoArgs, Decoded = Result, Input = Args>(
  run: RunRead<Args, Result>,
  decode?: Decode<Args, Result, Decoded>,
  encode?: Encode<Args, Input>,
): Read<Args, Result, Decoded, Input> {
  return Object.assign(run, { kind: 'read' as const, isLong: false, readsDirectory: false, decode, encode });
}

/** Defines a read that may examine many rows, even if only to count them, or that may return many bodies. */
export function longRead<Result, Args extends object = NoArgs, Decoded = Result, Input = Args>(
  run: RunRead<Args, Result>,
  decode?: Decode<Args, Result, Decoded>,
  encode?: Encode<Args, Input>,
): Read<Args, Result, Decoded, Input> {
  return Object.assign(read(run, decode, encode), { isLong: true });
}

/** Defines a read of one window of a long list; see `readPage`. */
export function pagedRead<Result, Args extends object, Input, Item>(
  run: RunRead<Args, Result>,
  pages: Pages<Args, Result, Input, Item>,
): PagedRead<Args, Result, Input, Item> {
  return Object.assign(run, { kind: 'paged' as const, isLong: true, readsDirectory: false, pages });
}

/** Defines a read of a project's data in the directory. */
export function directoryRead<Result, Args extends object>(run: RunRead<Args, Result>): Read<Args, Result> {
  return Object.assign(read(run), { readsDirectory: true });
}
