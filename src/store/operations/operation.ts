/**
 * What is known of one thing that can be done to the store? It is said once, beside the SQL that does it. What others do
 * with that is written once for all: which commands go together (batch-line.ts), in which order locks are taken
 * (operations/locks.ts), which thread reads (drivers/sqlite).
 */
import type { MessageKey, ProjectId } from '../../engine/model.ts';
import type { StoreLimits } from '../../engine/stores.ts';
import type { Queries } from '../driver.ts';
import type { WriteContext } from './logs/log-writer.ts';

/** Of what a command does, about: messages that are touched, and body bytes that are carried. */
export interface Weight {
  rows: number;
  bytes?: number;
}

/**
 * Which commands go first (batch-line.ts). Urgent are those that, if they came late, would have a worker declared dead or
 * everything wait for a number.
 */
export type CommandClass = 'urgent' | 'onward' | 'accept';

/** What a command must have for itself where several transactions run at once, as far as its arguments say. */
export interface Touched {
  projects?: Iterable<ProjectId>;
  /** Messages that exist, to be changed or removed, with their projects' shared state if they have part in it. */
  messages?: readonly MessageKey[];
  /** By their keys, with their projects. */
  runs?: readonly number[];
  schedules?: readonly number[];
  /** Finds the projects of what it does not know itself. */
  find?: (queries: Queries) => Promise<Iterable<ProjectId>>;
  /** It leaves alone what is not locked. */
  isChoosy?: true;
}

export interface WriteTraits<Args> {
  /** Default: onward. */
  class: (args: Args) => CommandClass;
  /** Default: one row. */
  weight: (args: Args) => Weight;
  /** Default: the project that its arguments name, if they do. */
  touches: (args: Args, limits: StoreLimits) => Touched;
  /** It may change what callers are admitted by, and signed for. Default: no. */
  changesAccounts: boolean;
}

/** A part of a transaction. Its arguments and its answer are plain data that can pass to another thread. */
export type Write<Args, Answer> = WriteTraits<Args> & {
  readonly kind: 'single';
  (context: WriteContext, args: Args): Promise<Answer>;
};

/** One that does all commands of a batch together, before the others; answers in their order. */
export type MergedWrite<Args, Answer> = WriteTraits<Args> & {
  readonly kind: 'merged';
  (context: WriteContext, commands: readonly Args[]): Promise<Answer[]>;
};

/** What reads without taking part in a transaction of the writer, on one snapshot. */
export type Read<Args, Answer, Told = Answer> = {
  readonly kind: 'read';
  /** See `longRead`. */
  readonly isLong: boolean;
  /** Makes of the answer what the engine is told, in the caller's thread. Default: the same. */
  readonly decode: (answer: Answer, args: Args) => Told;
  (queries: Queries, args: Args): Promise<Answer>;
};

/** Of an operation without arguments. */
type None = Record<never, never>;

const DEFAULTS: WriteTraits<object> = {
  class: () => 'onward',
  weight: () => ({ rows: 1 }),
  touches: (args) => ('projectId' in args ? { projects: [args.projectId as ProjectId] } : {}),
  changesAccounts: false,
};

type RunOne<Args, Answer> = (context: WriteContext, args: Args) => Promise<Answer>;

/** What its traits leave out is as `WriteTraits` says. */
export function write<Args extends object, Answer>(run: RunOne<Args, Answer>): Write<Args, Answer>;
export function write<Args extends object, Answer>(
  traits: Partial<WriteTraits<Args>>,
  run: RunOne<Args, Answer>,
): Write<Args, Answer>;
export function write<Args extends object, Answer>(
  ...given: [RunOne<Args, Answer>] | [Partial<WriteTraits<Args>>, RunOne<Args, Answer>]
): Write<Args, Answer> {
  const [traits, run] = given.length === 1 ? [{}, given[0]] : given;
  return Object.assign(run, { kind: 'single' as const, ...DEFAULTS, ...traits });
}

export function merged<Args extends object, Answer>(
  traits: Partial<WriteTraits<Args>>,
  run: (context: WriteContext, commands: readonly Args[]) => Promise<Answer[]>,
): MergedWrite<Args, Answer> {
  return Object.assign(run, { kind: 'merged' as const, ...DEFAULTS, ...traits });
}

type RunRead<Args, Answer> = (queries: Queries, args: Args) => Promise<Answer>;

/** Looks up a row or two. */
export function read<Answer, Args extends object = None, Told = Answer>(
  run: RunRead<Args, Answer>,
  decode: (answer: Answer, args: Args) => Told = same,
): Read<Args, Answer, Told> {
  return Object.assign(run, { kind: 'read' as const, isLong: false, decode });
}

/** May look at many rows, were it only to count who waits, or carry many bodies. */
export function longRead<Answer, Args extends object = None, Told = Answer>(
  run: RunRead<Args, Answer>,
  decode: (answer: Answer, args: Args) => Told = same,
): Read<Args, Answer, Told> {
  return Object.assign(run, { kind: 'read' as const, isLong: true, decode });
}

function same<Answer, Told>(answer: Answer): Told {
  return answer as unknown as Told;
}
