/** What a route is, and what its handler is given. Handlers know nothing of sockets. */
import type { TSchema } from '@sinclair/typebox';
import type { Engine } from '../engine/commands.ts';
import type { ProjectId } from '../engine/model.ts';
import type { Clock, EventLog } from '../engine/ports.ts';
import type { TokenScope } from '../engine/stores.ts';
import type { Quotas } from '../protocol/options.ts';
import type { Accounts } from './accounts.ts';
import type { Answer } from './answer.ts';
import type { Ignored } from './ignored.ts';
import type { JsonThread } from './json-thread.ts';
import type { ApiLimits } from './limits.ts';
import type { RequestBody } from './request-body.ts';
import type { Takes } from './takes.ts';

export type RouteMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';

/**
 * Who may call: anybody; a token that reads; one that publishes; only a full one, which may do all of it. What is made
 * to last, such as a schedule, needs `full` like all that changes something, and so do the signing keys, since they
 * would let their reader forge deliveries (contract M 2.2).
 */
export type Access = 'public' | 'read' | 'publish' | 'full';

export interface Route {
  method: RouteMethod;
  /** Fixed words and `:parameters`, or a final `*` for an embedded destination. */
  path: string;
  /** Its name for programs that are made from the interface document: stable, and no other route's. */
  operationId: string;
  access: Access;
  /** One sentence for the interface document. */
  summary: string;
  /** What a request holds besides path and token; absent: nothing that is read. */
  takes?: Takes;
  /** Statuses of refusals that do not follow from `access`, `path` and `takes`. */
  refusals?: readonly number[];
  /** Shape of each successful answer; `undefined` for "200, no body". A text with `contentMediaType` is sent as it is. */
  answers: Record<number, TSchema | undefined>;
  /** Whether pages of any origin may call all routes of this path. */
  isForAnyOrigin?: true;
  handle: (call: Call) => Answer | Promise<Answer>;
}

/** One request that was admitted. */
export interface Call {
  /** 0 on public routes. */
  projectId: ProjectId;
  /** What the token admits its bearer to; `undefined` on public routes. */
  scope: TokenScope | undefined;
  /** Of the accounts by which the caller was admitted. */
  accountsVersion: number | undefined;
  /** Looks again whether the caller is still admitted, by the newest accounts; answers their version. Throws `ApiError` 401, 403. */
  readmit: () => Promise<number>;
  method: string;
  /** The `:parameters` of the path in order, percent-decoded once. */
  ids: readonly string[];
  /** The first of them; `''` on paths without. */
  id: string;
  /** The text after `/v2/publish/`, as it came. */
  rawDestination: string;
  /** The text after the first `?`, as it came. */
  rawQuery: string;
  /** Name, value, name, value, … as they came. */
  rawHeaders: readonly string[];
  /** True when `Authorization` carried our token, which then must not be forwarded (contract M 4.5). */
  isTokenInHeader: boolean;
  callerIp: string | undefined;
  /** What of the request means nothing here; the answer will name it. */
  ignored: Ignored;
  /** The address that the request was sent to, as its caller wrote it. Throws `ApiError` 400 when that is no address. */
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

/** Why a URL is refused as a destination, as the end of a sentence; `undefined`: it is allowed. */
export type CheckDestination = (url: URL) => undefined | string | Promise<undefined | string>;

/** What the handlers work with. */
export interface Services {
  engine: Engine;
  accounts: Accounts;
  clock: Clock;
  log: EventLog;
  checkDestination: CheckDestination;
  quotas: Quotas;
  limits: Readonly<ApiLimits>;
  /** Names of headers that the operator's reverse proxy adds, never forwarded in blanket mode; `X-Forwarded-*` style. */
  proxyHeaders: readonly string[];
  /** Log entries in a page when the caller names no `count`; at most 1,000. */
  logsPageDefault: number;
  isReady: () => boolean;
  /** Resolves when every socket that had something to say in this turn of the event loop was heard. */
  endOfTurn: () => Promise<void>;
  json: JsonThread;
}
