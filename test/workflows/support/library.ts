/**
 * The client library in both generations, so that one scenario runs with both; the differences in their results are defined
 * here.
 */
import * as newest from '@upstash/workflow';
import * as newestNext from '@upstash/workflow/nextjs';
import * as oldest from 'workflow-oldest';
import * as oldestNext from 'workflow-oldest/nextjs';
import { isWithOurs } from '../../library/ours.ts';
import type { WebHandler } from './app.ts';

/** A workflow as its user writes it. The older generation's context has no `retried`, `labels` and `workflowRunCreatedAt`. */
export type Program<P = unknown> = (context: newest.WorkflowContext<P>) => Promise<unknown>;

export interface Failure<P> {
  context: { requestPayload: P; headers: Headers; workflowRunId: string; label?: string | undefined };
  failStatus: number;
  failResponse: string;
  failHeaders: Record<string, string[]>;
}

/** What is set for a workflow: the newest library tells it at the trigger, the older with each step. */
export interface Terms<P = unknown> {
  retries?: number;
  /** Expression, in milliseconds. */
  retryDelay?: string;
  flowControl?: NonNullable<newest.TriggerOptions['flowControl']>;
  failureUrl?: string;
  failureFunction?: (failure: Failure<P>) => Promise<string | undefined>;
}

/** What one trigger says besides. */
export interface Wish {
  body?: unknown;
  headers?: Record<string, string>;
  workflowRunId?: string;
  delay?: number;
  /** Unix time in seconds. */
  notBefore?: number;
  label?: string;
}

/** Where the library finds the server, and with which keys it checks signatures. */
export type Environment = Record<
  'QSTASH_URL' | 'QSTASH_TOKEN' | 'QSTASH_CURRENT_SIGNING_KEY' | 'QSTASH_NEXT_SIGNING_KEY',
  string
>;

/** A workflow that others can invoke. */
// biome-ignore lint/suspicious/noExplicitAny: as in the library's own type of several workflows
export type Invokable<P = any, R = any> = newest.InvokableWorkflow<P, R>;

export interface Library {
  name: string;
  serve<P>(program: Program<P>, terms: Terms<P>, env: Environment): WebHandler;
  /** For `serveMany` and for `context.invoke`. */
  create<P, R>(program: (context: newest.WorkflowContext<P>) => Promise<R>, terms?: Terms<P>): Invokable<P, R>;
  serveMany(workflows: Record<string, Invokable>, env: Environment): WebHandler;
  /** Answers the run's id. */
  trigger<P>(url: string, terms: Terms<P>, wish: Wish, env: Environment): Promise<string>;
  /** Runs as the library lists them, newest first. */
  runs(workflowRunId: string, env: Environment): Promise<newest.WorkflowRunLog[]>;
  cancel(workflowRunId: string, env: Environment): Promise<unknown>;
  notify(eventId: string, eventData: unknown, env: Environment): Promise<newest.NotifyResponse[]>;
  NonRetryable: new (message: string) => Error;
  RetryAfter: new (message: string, after: number | newest.Duration) => Error;
}

/** For our library in the newest one's place: its calls end after each step, as those of the newest do. */
export const CALL_FOR_EACH_STEP: object = { callBudgetMs: 0 };

const NEWEST: Library = {
  name: 'the newest library',
  serve(program, { failureFunction }, env) {
    // What is awaited for its string may as well answer none; the library's type says the same in another way.
    const options = {
      ...{ env, ...CALL_FOR_EACH_STEP },
      ...(failureFunction && { failureFunction: failureFunction as never }),
    };
    return newest.serve(program as newest.RouteFunction<unknown>, options).handler;
  },
  create(program, { failureFunction } = {}) {
    return newestNext.createWorkflow(program, {
      ...CALL_FOR_EACH_STEP,
      ...(failureFunction && { failureFunction: failureFunction as never }),
    } as object);
  },
  serveMany: (workflows, env) => newestNext.serveMany(workflows, { env } as object).POST,
  async trigger(url, { failureFunction: _, ...terms }, wish, env) {
    return (await newestClient(env).trigger({ url, ...terms, ...wish })).workflowRunId;
  },
  async runs(workflowRunId, env) {
    return (await newestClient(env).logs({ filter: { workflowRunId } })).runs;
  },
  cancel: (workflowRunId, env) => newestClient(env).cancel(workflowRunId),
  notify: (eventId, eventData, env) => newestClient(env).notify({ eventId, eventData }),
  NonRetryable: newest.WorkflowNonRetryableError,
  RetryAfter: newest.WorkflowRetryAfterError,
};

const OLDEST: Library = {
  name: 'the library of the generation before',
  serve(program, terms, env) {
    // Its context lacks a few fields of the newest one: see `Program`.
    const options = { ...terms, env } as unknown as oldest.WorkflowServeOptions;
    return oldest.serve(program as unknown as oldest.RouteFunction<unknown>, options as never).handler;
  },
  create(program, terms = {}) {
    return oldestNext.createWorkflow(program as never, terms as never) as never;
  },
  serveMany: (workflows, env) => oldestNext.serveMany(workflows as never, { env } as object).POST,
  async trigger(url, { failureFunction, failureUrl, ...terms }, wish, env) {
    const failure =
      failureUrl === undefined ? failureFunction && { useFailureFunction: true as const } : { failureUrl };
    return (await oldestClient(env).trigger({ url, ...terms, ...wish, ...failure })).workflowRunId;
  },
  async runs(workflowRunId, env) {
    return (await oldestClient(env).logs({ workflowRunId })).runs as unknown as newest.WorkflowRunLog[];
  },
  cancel: (ids, env) => oldestClient(env).cancel({ ids }),
  notify: (eventId, eventData, env) => oldestClient(env).notify({ eventId, eventData }),
  NonRetryable: oldest.WorkflowNonRetryableError,
  RetryAfter: oldest.WorkflowRetryAfterError,
};

/** For what only the newest generation can do. */
export const LIBRARY: Library = NEWEST;

/** Ours in the newest one's place has been told apart by how its files were asked for (test/library/scenarios.full.test.ts). */
export const LIBRARIES: readonly Library[] = isWithOurs(import.meta.url) ? [NEWEST] : [NEWEST, OLDEST];

export function newestClient({ QSTASH_URL: baseUrl, QSTASH_TOKEN: token }: Environment): newest.Client {
  return new newest.Client({ baseUrl, token, retry: false });
}

export function oldestClient({ QSTASH_URL: baseUrl, QSTASH_TOKEN: token }: Environment): oldest.Client {
  return new oldest.Client({ baseUrl, token, retry: false });
}
