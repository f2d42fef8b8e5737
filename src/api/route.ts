/** What a route is, and what its handler is given. Handlers do not use sockets. */
import type { TSchema } from '@sinclair/typebox';
import type { TokenScope } from '../engine/accounts/store.ts';
import type { Engine } from '../engine/commands.ts';
import type { Admitted } from '../engine/messages/publish-command.ts';
import type { Millis, ProjectId } from '../engine/model.ts';
import type { Clock, EventLog } from '../engine/ports.ts';
import type { Quotas } from '../protocol/options/options.ts';
import type { PlainHeaderPolicy } from '../protocol/trace-context.ts';
import type { RunKey } from '../workflow/model.ts';
import type { Accounts, ProjectTokens } from './accounts.ts';
import type { OtherWorkers } from './edge/other-workers.ts';
import type { ApiLimits } from './limits.ts';
import type { AcceptedInput } from './messages/filters.ts';
import type { Ignored } from './publishing/ignored.ts';
import type { JsonThread } from './requests/json-thread.ts';
import type { RequestBody } from './requests/request-body.ts';
import type { ApiResponse } from './response.ts';

export type RouteMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';

/**
 * Who may call: anybody, any token, a token that may read, a token that may publish, or only a full token. A full token
 * may do all of it. Changes that last, such as a schedule, need `full`. So do the signing keys, since a reader could forge
 * deliveries with them (contract M 2.2).
 */
export type Access = 'public' | 'any' | 'read' | 'publish' | 'full';

export interface Route {
  method: RouteMethod;
  /** Fixed words and `:parameters`, or a final `*` for an embedded destination. */
  path: string;
  /** Its name in the interface document, for generated clients: stable and unique. */
  operationId: string;
  access: Access;
  /** One sentence for the interface document. */
  summary: string;
  /** What a request may hold besides path and token; absent: nothing else is read. */
  takes?: AcceptedInput;
  /** Statuses of refusals besides those that follow from `access`, `path` and `takes`. */
  refusals?: readonly number[];
  /**
   * Shape of each successful answer; `undefined` for "200, no body". A text with `contentMediaType` is sent unchanged.
   */
  responses: Record<number, TSchema | undefined>;
  /** Whether a token in the query is refused: URLs get around, and what this route may do is too much for that. */
  isTokenInHeaderOnly?: true;
  /** Whether the token that a run's delivery carries is enough, for what is of that run (contract K 2). */
  isForItsRun?: true;
  /** Whether an answer may have many megabytes: it then waits for room in memory before anything is read for it (P10). */
  isLong?: true;
  /** Whether pages of any origin may call all routes of this path. */
  isForAnyOrigin?: true;
  handle: (call: Call) => ApiResponse | Promise<ApiResponse>;
}

/** What every row of the table begins with. Its answer is a 200 without a body unless the row says otherwise. */
export function row(access: Access, method: RouteMethod, path: string, operationId: string) {
  const responses: Route['responses'] = { 200: undefined };
  return { access, method, path, operationId, responses };
}

/** One authenticated request, or one to a public route. */
export interface Call extends Admitted {
  /** 0 on public routes. */
  projectId: ProjectId;
  /** Scope of the token; `undefined` on public routes. */
  scope: TokenScope | undefined;
  /** What its owner calls the token, where it has a name. */
  tokenName: string | undefined;
  /** The run whose token the caller has instead of a token of the project. */
  runKey?: RunKey | undefined;
  /** Hash of the caller's token; `''` on public routes. */
  tokenHash: string;
  method: string;
  /** The `:parameters` of the path in order, percent-decoded once. */
  ids: readonly string[];
  /** The first of `ids`; `''` on paths without parameters. */
  id: string;
  /** The raw text after `/v2/publish/` and the like. */
  rawDestination: string;
  /** The raw text after the first `?`. */
  rawQuery: string;
  /** Name, value, name, value, … as received. */
  rawHeaders: readonly string[];
  /** True when `Authorization` carried our token, which then must not be forwarded (contract M 4.5). */
  isTokenInHeader: boolean;
  callerIp: string | undefined;
  /** Aborts once the client has closed the connection without an answer; for what may take long. */
  hangUp: () => AbortSignal;
  /** As `Connection.leaving`. */
  leaving: () => AbortSignal;
  /** Parts of the request that the server ignores; the answer names them. */
  ignored: Ignored;
  /** The URL that the request was sent to, as the client wrote it. Throws `ApiError` 400 when it is not a valid URL. */
  calledUrl: () => CalledUrl;
  body: RequestBody;
}

/** The parts of a URL that was called; `<proto>://<host><url>` is valid. */
export interface CalledUrl {
  proto: 'http' | 'https';
  /** With the port, where there is one. */
  host: string;
  /** Path and query. */
  url: string;
}

/** The reason why a URL is refused as a destination, as the end of a sentence; `undefined` when it is allowed. */
export type CheckDestination = (url: URL) => undefined | string | Promise<undefined | string>;

/** Time that advances only on request. It is the same for all projects. */
export interface VirtualTime {
  nowMs(): Millis;
  /** Whether no message and no run waits for any time. */
  readonly isIdle: boolean;
  /** Lets time pass; resolves when all that falls due on the way has happened. */
  advance(ms: Millis): Promise<void>;
  /** Lets time pass until all is idle, for `limitMs` at most; whether it is. */
  runUntilIdle(limitMs: Millis): Promise<boolean>;
}

/** The services that handlers use. */
export interface Services {
  engine: Engine;
  accounts: Accounts;
  /** Absent where tokens are published, as in development: there are no such routes then. */
  tokens?: ProjectTokens | undefined;
  clock: Clock;
  /** Absent: this is the only worker of its process. */
  others?: OtherWorkers | undefined;
  /** Absent where time passes by itself. */
  virtualTime?: VirtualTime | undefined;
  log: EventLog;
  /** For a project, since projects take turns when names are looked up. */
  checkDestination: (projectId: ProjectId) => CheckDestination;
  quotas: Quotas;
  limits: Readonly<ApiLimits>;
  /**
   * Names of headers that the operator's reverse proxy adds, such as `X-Forwarded-*`; never forwarded in blanket mode.
   */
  proxyHeaders: readonly string[];
  /** Which plain headers of a publish are forwarded with its message. */
  plainHeaders: PlainHeaderPolicy;
  /** Log entries on a page when the request has no `count`; at most 1,000. */
  logsPageDefault: number;
  console: { file(name: string, rawHeaders: readonly string[]): Promise<ApiResponse> };
  isReady: () => boolean;
  /** Resolves when every socket with input in this turn of the event loop has been read. */
  endOfTurn: () => Promise<void>;
  json: JsonThread;
  /** Aborted when the listener closes: an answer without an end then ends. */
  closing: AbortSignal;
}

/** The first header of that name, which is in lower case. */
export function headerOf(rawHeaders: readonly string[], wanted: string): string | undefined {
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() === wanted) return rawHeaders[at + 1];
  }
  return undefined;
}
