/**
 * The traits of one operation of the store, stated once beside its SQL. Each use of them is written once too: which commands
 * share a batch (batches/batch-queue.ts), the order of locks (locking/locks.ts), and which thread reads (drivers/sqlite).
 */
import type { MessageKey, ProjectId } from '../../engine/model.ts';
import type { StoreLimits } from '../../engine/stores.ts';
import type { Queries } from '../driver.ts';
import type { WriteContext } from './logs/log-writer.ts';

/** About how much a command does: the messages it touches and the body bytes it carries. */
export interface Weight {
  rows: number;
  bytes?: number;
}

/**
 * Which commands go first (batch-queue.ts). Urgent commands may not be late: others would expire this worker, or all its
 * publishes would wait for a number.
 */
export type CommandClass = 'urgent' | 'onward' | 'accept';

/** What a command must lock where several transactions run at once, as far as its arguments say. */
export interface Touched {
  projects?: Iterable<ProjectId>;
  /** Projects whose rows it writes without a lock. Those that it locks need not be named again. */
  writes?: Iterable<ProjectId>;
  /** Existing messages to change or remove. If they share state with others, their projects are locked too. */
  messages?: readonly MessageKey[];
  schedules?: readonly number[];
  /** Finds the projects that the arguments do not name. */
  find?: (queries: Queries) => Promise<Iterable<ProjectId>>;
  /** True for a command that skips what is not locked. */
  isChoosy?: true;
}

export interface WriteTraits<Args> {
  /** Default: onward. */
  class: (args: Args) => CommandClass;
  /** Default: one row. */
  weight: (args: Args) => Weight;
  /** Default: the project that its arguments name, if they do. */
  touches: (args: Args, limits: StoreLimits) => Touched;
  /** It may change who is admitted, or the keys with which requests are signed. Default: no. */
  changesAccounts: boolean;
}

/**
 * How values of the engine become plain rows and back, in the caller's thread; for a long list `pause` gives other work a
 * turn. Default: unchanged.
 */
export interface Codec<Args, Answer, Given, Told> {
  readonly encode: ((given: Given, pause: Pause) => Args | Promise<Args>) | undefined;
  readonly decode: ((answer: Answer, args: Args, pause: Pause) => Told | Promise<Told>) | undefined;
}

export type Pause = () => Promise<void> | undefined;

/** A part of a transaction. Its arguments and its answer are plain data that can pass to another thread. */
export type Write<Args, Answer, Given = Args, Told = Answer> = WriteTraits<Args> &
  Codec<Args, Answer, Given, Told> & {
    readonly kind: 'single';
    (context: WriteContext, args: Args): Promise<Answer>;
  };

/** A write that runs all its commands of a batch together, before the others. It answers them in their order. */
export type MergedWrite<Args, Answer, Given = Args, Told = Answer> = WriteTraits<Args> &
  Codec<Args, Answer, Given, Told> & {
    readonly kind: 'merged';
    (context: WriteContext, commands: readonly Args[]): Promise<Answer[]>;
  };

/** A read on one snapshot, outside the writer's transactions. */
export type Read<Args, Answer, Told = Answer, Given = Args> = Codec<Args, Answer, Given, Told> & {
  readonly kind: 'read';
  /** See `longRead`. */
  readonly isLong: boolean;
  /** Its project may live in another cell: it asks the directory. */
  readonly isOfDirectory: boolean;
  (queries: Queries, args: Args): Promise<Answer>;
};

/** A long read of one window of a list; its caller gets a page, which may take several of them. */
export type PagedRead<Args, Answer, Given, Item> = Omit<Read<Args, Answer>, 'decode' | 'encode' | 'kind'> & {
  readonly kind: 'paged';
  readonly pages: Pages<Args, Answer, Given, Item>;
  (queries: Queries, args: Args): Promise<Answer>;
};

export interface Pages<Args, Answer, Given, Item> {
  /** All but the slice, for the first window or a later one. */
  readonly encode: (given: Given, window: number) => Omit<Args, 'slice'>;
  readonly decode: (answer: Answer, args: Args, pause: Pause) => Item[] | Promise<Item[]>;
  readonly windowsMax?: number;
}

/** The arguments of an operation without arguments. */
type None = Record<never, never>;

const DEFAULTS: WriteTraits<object> = {
  class: () => 'onward',
  weight: () => ({ rows: 1 }),
  touches: (args) => ('projectId' in args ? { projects: [args.projectId as ProjectId] } : {}),
  changesAccounts: false,
};

type RunOne<Args, Answer> = (context: WriteContext, args: Args) => Promise<Answer>;

type Encode<Args, Given> = (given: Given, pause: Pause) => Args | Promise<Args>;

type Decode<Args, Answer, Told> = (answer: Answer, args: Args, pause: Pause) => Told | Promise<Told>;

/** Traits that are left out have the defaults of `WriteTraits`. */
export function write<Args extends object, Answer>(run: RunOne<Args, Answer>): Write<Args, Answer>;
export function write<Args extends object, Answer, Given = Args, Told = Answer>(
  traits: Partial<WriteTraits<Args>>,
  run: RunOne<Args, Answer>,
  encode?: Encode<Args, Given>,
  decode?: Decode<Args, Answer, Told>,
): Write<Args, Answer, Given, Told>;
export function write(
  first: RunOne<never, unknown> | Partial<WriteTraits<never>>,
  second?: RunOne<never, unknown>,
  encode?: Encode<never, never>,
  decode?: Decode<never, unknown, unknown>,
): Write<never, unknown, never, unknown> {
  const [traits, run] = typeof first === 'function' ? [{}, first] : [first, second as RunOne<never, unknown>];
  return Object.assign(run, { kind: 'single' as const, encode, decode, ...DEFAULTS, ...traits });
}

export function merged<Args extends object, Answer, Given = Args, Told = Answer>(
  traits: Partial<WriteTraits<Args>>,
  run: (context: WriteContext, commands: readonly Args[]) => Promise<Answer[]>,
  encode?: Encode<Args, Given>,
  decode?: Decode<Args, Answer, Told>,
): MergedWrite<Args, Answer, Given, Told> {
  return Object.assign(run, { kind: 'merged' as const, encode, decode, ...DEFAULTS, ...traits });
}

type RunRead<Args, Answer> = (queries: Queries, args: Args) => Promise<Answer>;

/** Looks up a row or two. */
export function read<Answer, Args extends object = None, Told = Answer, Given = Args>(
  run: RunRead<Args, Answer>,
  decode?: Decode<Args, Answer, Told>,
  encode?: Encode<Args, Given>,
): Read<Args, Answer, Told, Given> {
  return Object.assign(run, { kind: 'read' as const, isLong: false, isOfDirectory: false, decode, encode });
}

/** A read that may look at many rows, even if only to count what waits, or that may return many bodies. */
export function longRead<Answer, Args extends object = None, Told = Answer, Given = Args>(
  run: RunRead<Args, Answer>,
  decode?: Decode<Args, Answer, Told>,
  encode?: Encode<Args, Given>,
): Read<Args, Answer, Told, Given> {
  return Object.assign(read(run, decode, encode), { isLong: true });
}

/** A read of one window of a long list; see `readPage`. */
export function pagedRead<Answer, Args extends object, Given, Item>(
  run: RunRead<Args, Answer>,
  pages: Pages<Args, Answer, Given, Item>,
): PagedRead<Args, Answer, Given, Item> {
  return Object.assign(run, { kind: 'paged' as const, isLong: true, isOfDirectory: false, pages });
}

/** A read of what the directory says of a project. */
export function directoryRead<Answer, Args extends object>(run: RunRead<Args, Answer>): Read<Args, Answer> {
  return Object.assign(read(run), { isOfDirectory: true });
}
