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
 * The order of commands (batch-queue.ts). A late urgent command would let other workers expire this one, or make all its
 * publishes wait for a number.
 */
export type CommandClass = 'urgent' | 'onward' | 'accept';

/** What a command must lock where several transactions run at once, according to its arguments. */
export interface LockScope {
  projects?: Iterable<ProjectId>;
  /** Projects whose rows it writes without a lock. Locked projects need not be repeated here. */
  writes?: Iterable<ProjectId>;
  /** Existing messages to change or remove. If they share state with others, their projects are locked too. */
  messages?: readonly MessageKey[];
  schedules?: readonly number[];
  /** Finds the projects that the arguments do not name. */
  find?: (queries: Queries) => Promise<Iterable<ProjectId>>;
  /** The command skips projects that are not locked, instead of being blocked. */
  skipsLocked?: true;
}

export interface WriteTraits<Args> {
  /** Default: onward. */
  class: (args: Args) => CommandClass;
  /** Default: one row. */
  weight: (args: Args) => Weight;
  /** Default: `projectId` of the arguments, if they have it. */
  touches: (args: Args, limits: StoreLimits) => LockScope;
  /** The command may change tokens, or the keys with which requests are signed. Default: no. */
  changesAccounts: boolean;
}

/**
 * Converts values of the engine to plain rows and back, in the caller's thread. During a long list, `pause` lets other
 * work run. Default: unchanged.
 */
export interface Codec<Args, Answer, Input, Decoded> {
  readonly encode: ((input: Input, pause: Pause) => Args | Promise<Args>) | undefined;
  readonly decode: ((answer: Answer, args: Args, pause: Pause) => Decoded | Promise<Decoded>) | undefined;
}

export type Pause = () => Promise<void> | undefined;

/** A write in a transaction. Its arguments and its result are plain data that can pass to another thread. */
export type Write<Args, Answer, Input = Args, Decoded = Answer> = WriteTraits<Args> &
  Codec<Args, Answer, Input, Decoded> & {
    readonly kind: 'single';
    (context: WriteContext, args: Args): Promise<Answer>;
  };

/** A write that runs all its commands of a batch together, before the others. Returns their results in their order. */
export type MergedWrite<Args, Answer, Input = Args, Decoded = Answer> = WriteTraits<Args> &
  Codec<Args, Answer, Input, Decoded> & {
    readonly kind: 'merged';
    (context: WriteContext, commands: readonly Args[]): Promise<Answer[]>;
  };

/** A read on one snapshot, outside the writer's transactions. */
export type Read<Args, Answer, Decoded = Answer, Input = Args> = Codec<Args, Answer, Input, Decoded> & {
  readonly kind: 'read';
  /** See `longRead`. */
  readonly isLong: boolean;
  /** It reads the directory, because the project may live in another cell. */
  readonly readsDirectory: boolean;
  (queries: Queries, args: Args): Promise<Answer>;
};

/** A long read of one window of a list. The caller gets a page, which may take several windows. */
export type PagedRead<Args, Answer, Input, Item> = Omit<Read<Args, Answer>, 'decode' | 'encode' | 'kind'> & {
  readonly kind: 'paged';
  readonly pages: Pages<Args, Answer, Input, Item>;
  (queries: Queries, args: Args): Promise<Answer>;
};

export interface Pages<Args, Answer, Input, Item> {
  /** The arguments without the slice, for the first window (0) or a later one. */
  readonly encode: (input: Input, window: number) => Omit<Args, 'slice'>;
  readonly decode: (answer: Answer, args: Args, pause: Pause) => Item[] | Promise<Item[]>;
  readonly windowsMax?: number;
}

type NoArgs = Record<never, never>;

const DEFAULTS: WriteTraits<object> = {
  class: () => 'onward',
  weight: () => ({ rows: 1 }),
  touches: (args) => ('projectId' in args ? { projects: [args.projectId as ProjectId] } : {}),
  changesAccounts: false,
};

type RunOne<Args, Answer> = (context: WriteContext, args: Args) => Promise<Answer>;

type Encode<Args, Input> = (input: Input, pause: Pause) => Args | Promise<Args>;

type Decode<Args, Answer, Decoded> = (answer: Answer, args: Args, pause: Pause) => Decoded | Promise<Decoded>;

/** Defines a write. Missing traits have the defaults of `WriteTraits`. */
export function write<Args extends object, Answer>(run: RunOne<Args, Answer>): Write<Args, Answer>;
export function write<Args extends object, Answer, Input = Args, Decoded = Answer>(
  traits: Partial<WriteTraits<Args>>,
  run: RunOne<Args, Answer>,
  encode?: Encode<Args, Input>,
  decode?: Decode<Args, Answer, Decoded>,
): Write<Args, Answer, Input, Decoded>;
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
export function merged<Args extends object, Answer, Input = Args, Decoded = Answer>(
  traits: Partial<WriteTraits<Args>>,
  run: (context: WriteContext, commands: readonly Args[]) => Promise<Answer[]>,
  encode?: Encode<Args, Input>,
  decode?: Decode<Args, Answer, Decoded>,
): MergedWrite<Args, Answer, Input, Decoded> {
  return Object.assign(run, { kind: 'merged' as const, encode, decode, ...DEFAULTS, ...traits });
}

type RunRead<Args, Answer> = (queries: Queries, args: Args) => Promise<Answer>;

/** Defines a read of one or two rows. */
export function read<Answer, Args extends object = NoArgs, Decoded = Answer, Input = Args>(
  run: RunRead<Args, Answer>,
  decode?: Decode<Args, Answer, Decoded>,
  encode?: Encode<Args, Input>,
): Read<Args, Answer, Decoded, Input> {
  return Object.assign(run, { kind: 'read' as const, isLong: false, readsDirectory: false, decode, encode });
}

/** Defines a read that may examine many rows, even if only to count them, or that may return many bodies. */
export function longRead<Answer, Args extends object = NoArgs, Decoded = Answer, Input = Args>(
  run: RunRead<Args, Answer>,
  decode?: Decode<Args, Answer, Decoded>,
  encode?: Encode<Args, Input>,
): Read<Args, Answer, Decoded, Input> {
  return Object.assign(read(run, decode, encode), { isLong: true });
}

/** Defines a read of one window of a long list; see `readPage`. */
export function pagedRead<Answer, Args extends object, Input, Item>(
  run: RunRead<Args, Answer>,
  pages: Pages<Args, Answer, Input, Item>,
): PagedRead<Args, Answer, Input, Item> {
  return Object.assign(run, { kind: 'paged' as const, isLong: true, readsDirectory: false, pages });
}

/** Defines a read of a project's data in the directory. */
export function directoryRead<Answer, Args extends object>(run: RunRead<Args, Answer>): Read<Args, Answer> {
  return Object.assign(read(run), { readsDirectory: true });
}
