/** The types of a route, of the call that its handler gets, and of the services that handlers use. Handlers do not use sockets. */
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
 * The token that a route needs: none, any, one that may read, one that may publish, or a full token. A full token is
 * always sufficient. Lasting changes, such as schedules, need `full`. The signing keys need `full` too, since a reader
 * of the keys could forge deliveries (contract M 2.2).
 */
export type Access = 'public' | 'any' | 'read' | 'publish' | 'full';

export interface Route {
  method: RouteMethod;
  /** Fixed words and `:parameters`, or a final `*` for an embedded destination. */
  path: string;
  /** The name in the interface document, which generated clients use: stable and unique. */
  operationId: string;
  access: Access;
  /** One sentence for the interface document. */
  summary: string;
  /** The parts of a request that are read besides path and token. Default: none. */
  takes?: AcceptedInput;
  /** Statuses of refusals besides those that follow from `access`, `path` and `takes`. */
  refusals?: readonly number[];
  /**
   * By status: the schema of each success response; `undefined` for "200, no body". A text with `contentMediaType` is sent
   * unchanged.
   */
  responses: Record<number, TSchema | undefined>;
  /** Whether a token in the query is rejected. URLs are logged and shared, which is too risky for this route. */
  isTokenInHeaderOnly?: true;
  /** Whether the token of a run's delivery is sufficient, for data of that run (contract K 2). */
  isForItsRun?: true;
  /** Whether a response may have many megabytes. If so, a request waits for memory before any row is read (P10). */
  isLong?: true;
  /** Whether pages of any origin may call all routes of this path. */
  isForAnyOrigin?: true;
  handle: (call: Call) => ApiResponse | Promise<ApiResponse>;
}

/** The first members of every route. The response is a 200 without a body unless the route sets other `responses`. */
export function row(access: Access, method: RouteMethod, path: string, operationId: string) {
  const responses: Route['responses'] = { 200: undefined };
  return { access, method, path, operationId, responses };
}

/** An authenticated request, or a request to a public route. */
export interface Call extends Admitted {
  /** 0 on public routes. */
  projectId: ProjectId;
  /** Scope of the token; `undefined` on public routes. */
  scope: TokenScope | undefined;
  /** The name that the owner gave the token, if any. */
  tokenName: string | undefined;
  /** Set if the caller has the token of a run instead of a token of the project. */
  runKey?: RunKey | undefined;
  /** Hash of the caller's token; `''` on public routes. */
  tokenHash: string;
  method: string;
  /** The `:parameters` of the path in order, percent-decoded once. */
  ids: readonly string[];
  /** The first of `ids`; `''` on paths without parameters. */
  id: string;
  /** The raw text after `/v2/publish/` and similar paths. */
  rawDestination: string;
  /** The raw text after the first `?`. */
  rawQuery: string;
  /** Name, value, name, value, … as received. */
  rawHeaders: readonly string[];
  /** True if the token was in `Authorization`, which then must not be forwarded (contract M 4.5). */
  isTokenInHeader: boolean;
  callerIp: string | undefined;
  /** Aborts once the client has closed the connection before the response; for long operations. */
  hangUp: () => AbortSignal;
  /** See `Connection.leaving`. */
  leaving: () => AbortSignal;
  /** Parts of the request that the server ignores. The response names them. */
  ignored: Ignored;
  /** The URL that the client called. Throws `ApiError` 400 if it is not valid. */
  calledUrl: () => CalledUrl;
  body: RequestBody;
}

/** The parts of a called URL; `<proto>://<host><url>` is valid. */
export interface CalledUrl {
  proto: 'http' | 'https';
  /** With the port, if there is one. */
  host: string;
  /** Path and query. */
  url: string;
}

/** The reason why a URL is rejected as a destination, as the end of a sentence; `undefined` if it is allowed. */
export type CheckDestination = (url: URL) => undefined | string | Promise<undefined | string>;

/** Time that advances only on request. It is the same for all projects. */
export interface VirtualTime {
  nowMs(): Millis;
  /** True if no message and no run is waiting for a time. */
  readonly isIdle: boolean;
  /** Advances the time. Resolves when everything that became due is done. */
  advance(ms: Millis): Promise<void>;
  /** Advances the time until the server is idle, at most by `limitMs`. Resolves to true if the server is idle. */
  runUntilIdle(limitMs: Millis): Promise<boolean>;
}

/** The services that handlers use. */
export interface Services {
  engine: Engine;
  accounts: Accounts;
  /** Absent if tokens are public, as in development. The routes of tokens then do not exist. */
  tokens?: ProjectTokens | undefined;
  clock: Clock;
  /** Absent if this is the only worker of its process. */
  others?: OtherWorkers | undefined;
  /** Absent if time is real. */
  virtualTime?: VirtualTime | undefined;
  log: EventLog;
  /** The destination check for a project. Projects share the lookups of host names round-robin. */
  checkDestination: (projectId: ProjectId) => CheckDestination;
  quotas: Quotas;
  limits: Readonly<ApiLimits>;
  /**
   * Names of headers that the operator's reverse proxy adds, such as `X-Forwarded-*`; never forwarded in blanket mode.
   */
  proxyHeaders: readonly string[];
  /** Selects the plain headers of a publish that are forwarded with its message. */
  plainHeaders: PlainHeaderPolicy;
  /** Log entries on a page when the request has no `count`; at most 1,000. */
  logsPageDefault: number;
  console: { file(name: string, rawHeaders: readonly string[]): Promise<ApiResponse> };
  isReady: () => boolean;
  /** Resolves when every socket with input in this turn of the event loop has been read. */
  endOfTurn: () => Promise<void>;
  json: JsonThread;
  /** Aborts when the listener closes. Each response that would never end must then be ended. */
  closing: AbortSignal;
}

/** The value of the first header with this name, which is in lower case. */
export function headerOf(rawHeaders: readonly string[], wanted: string): string | undefined {
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() === wanted) return rawHeaders[at + 1];
  }
  return undefined;
}
