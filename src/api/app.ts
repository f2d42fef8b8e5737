/**
 * Serves the HTTP interface. Every request takes the same steps: find the route by the raw target, authenticate the caller,
 * call the handler, send its response.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Slices } from '../engine/loops/slices.ts';
import type { Millis, ProjectId } from '../engine/model.ts';
import { ApiError } from '../protocol/errors.ts';
import { headersTooLarge } from '../protocol/options/options.ts';
import { authenticate, authorize, unauthenticated } from './edge/authentication.ts';
import type { Browsers } from './edge/browsers.ts';
import { BurstLimit } from './edge/burst-limit.ts';
import { Connections } from './edge/connections.ts';
import { Listener } from './edge/listener.ts';
import { MemoryBudget } from './edge/memory-budget.ts';
import {
  type CalledUrlReader,
  type CallerIpReader,
  calledUrlReader,
  callerIpReader,
  trustedProxies,
} from './edge/proxies.ts';
import { ResponseQueue } from './edge/response-queue.ts';
import { type ApiLimits, HEADER_LINES_MAX, LONG_RESPONSE_BYTES, LONG_RESPONSES_BYTES_MAX } from './limits.ts';
import { Console, type ConsoleOptions } from './pages/console.ts';
import { Ignored, IgnoredLog, KnownOptions } from './publishing/ignored.ts';
import { JsonThread } from './requests/json-thread.ts';
import { ClientDisconnected, RequestBody } from './requests/request-body.ts';
import { type Exchange, respond } from './respond.ts';
import { type ApiResponse, errorResponse, refusal } from './response.ts';
import type { Call, Route, Services } from './route.ts';
import { type Match, RouteFinder } from './route-finder.ts';
import { createRoutes } from './routes.ts';
import { callerClaimOf } from './runs/checkpoints.ts';

export interface ApiOptions extends Omit<Services, 'json' | 'closing' | 'console'> {
  /** Addresses and CIDRs of proxies whose `X-Forwarded-For` is trusted. */
  trustedProxies: readonly string[];
  browsers: Browsers;
  console: ConsoleOptions;
  /** Called after each response, for metrics. */
  onResponse?: ((isPublish: boolean, status: number, durationMs: Millis) => void) | undefined;
}

/** Creates the server without listening. Throws a `TypeError` that names the first invalid entry of `trustedProxies`. */
export function createApi(options: ApiOptions): Listener {
  const json = new JsonThread(options.clock);
  const closing = new AbortController();
  const connections = new Connections(options.endOfTurn);
  const console = new Console(options.console);
  const routes = createRoutes({ ...options, json, closing: closing.signal, console });
  const edge = new Edge(options, { routes, console, connections });
  return new Listener({
    limits: options.limits,
    connections,
    serve: (request, response) => void edge.serve(request, response),
    onClosing: () => closing.abort(),
    onClosed: () => json.close(),
  });
}

const TOKEN_IN_QUERY = 'this needs the token in the header Authorization: queries are kept in logs and histories';

/** The members of a call that are derived from the token. */
type Caller = Required<
  Pick<Call, 'projectId' | 'scope' | 'tokenName' | 'tokenHash' | 'isTokenInHeader' | 'accountsVersion' | 'runKey'>
>;

const NOBODY: Caller = {
  projectId: 0,
  scope: undefined,
  tokenName: undefined,
  tokenHash: '',
  isTokenInHeader: false,
  accountsVersion: undefined,
  runKey: undefined,
};

/** Takes each request through the same steps. */
class Edge {
  readonly #options: ApiOptions;
  readonly #finder: RouteFinder;
  readonly #console: Console;
  readonly #connections: Connections;
  readonly #budget: MemoryBudget;
  readonly #responses: ResponseQueue;
  readonly #callerIp: CallerIpReader;
  readonly #calledUrl: CalledUrlReader;
  readonly #burst: BurstLimit;
  readonly #slices: () => Slices;
  readonly #known: ReadonlyMap<Route, KnownOptions>;
  readonly #ignoredLog: IgnoredLog;

  constructor(
    options: ApiOptions,
    { routes, console, connections }: { routes: readonly Route[]; console: Console; connections: Connections },
  ) {
    this.#options = options;
    this.#finder = new RouteFinder(routes);
    this.#console = console;
    this.#connections = connections;
    // Third parties call the public routes, with headers and parameters of their own. These are not reported as ignored.
    const own = routes.filter(({ access }) => access !== 'public');
    this.#known = new Map(own.map((route) => [route, new KnownOptions(route)]));
    this.#ignoredLog = new IgnoredLog(options.log);
    this.#budget = new MemoryBudget(options.limits.requestMemoryBytesMax);
    this.#responses = new ResponseQueue(LONG_RESPONSES_BYTES_MAX, options.clock);
    this.#callerIp = callerIpReader(options.trustedProxies);
    this.#calledUrl = calledUrlReader(trustedProxies(options.trustedProxies));
    this.#slices = () => new Slices(options.clock, options.endOfTurn);
    this.#burst = new BurstLimit(options.limits.requestsPerSecondMax);
  }

  /** Never rejects. */
  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { browsers, clock, limits, log, onResponse } = this.#options;
    const startedAtMs = clock.elapsedMs;
    const connection = this.#connections.of(request.socket);
    if (connection.isEnding) return;
    connection.addRequest(request, response);
    const exchange: Exchange = { request, response, connection };
    const body = new RequestBody(request, response, this.#budget, this.#slices);
    const match = this.#finder.find(request.url ?? '/', request.method ?? '');
    const route = match.routes.get(request.method ?? '');
    const ignored = new Ignored();
    try {
      let apiResponse = browsers.responseTo(request, response, match);
      if (!apiResponse) {
        checkHead(request, limits);
        const admitted = this.#admit(request, match);
        const caller = admitted instanceof Promise ? await admitted : admitted;
        apiResponse = await (route
          ? this.#handle(exchange, match, { route, caller, body, ignored })
          : (this.#console.responseTo(request) ?? noRoute(match)));
      }
      if (route) this.#ignoredLog.logOnce(route, ignored);
      respond(exchange, ignored.addTo(apiResponse), clock);
    } catch (error) {
      // The client has disconnected, or a part of the response is already sent.
      if (error instanceof ClientDisconnected || response.headersSent) {
        response.destroy();
        return;
      }
      respond(exchange, errorResponse(error, log, route?.path ?? 'unknown'), clock);
    } finally {
      body.release();
      if (onResponse && response.headersSent) {
        onResponse(route?.access === 'publish', response.statusCode, clock.elapsedMs - startedAtMs);
      }
    }
  }

  /** Throws `ApiError` 401, 403 or 429. Waits only if the accounts in memory may be older than the token. */
  #admit(request: IncomingMessage, match: Match, mayRefresh = true): Caller | Promise<Caller> {
    const { accounts, clock } = this.#options;
    const { method = '', headers } = request;
    const route = match.routes.get(method);
    const claim = route?.isForItsRun && callerClaimOf(accounts, headers.authorization);
    if (claim) return { ...NOBODY, projectId: claim.projectId, runKey: claim.runKey };
    if (!match.isProtected) return NOBODY;
    const admission = authenticate(accounts, headers.authorization, match.rawQuery);
    const newer = accounts.catchUp?.(admission?.caller.projectId);
    if (newer !== undefined) return newer.then(() => this.#admit(request, match, mayRefresh));
    const accountsVersion = accounts.sharedVersion;
    if (!admission) {
      const refreshed = mayRefresh ? accounts.refreshForUnknownToken?.() : undefined;
      if (refreshed !== undefined) return refreshed.then(() => this.#admit(request, match, false));
      throw unauthenticated();
    }
    authorize(admission.caller, method, route?.access);
    const { tokenHash, isTokenInHeader } = admission;
    const { projectId, scope, tokenName } = admission.caller;
    if (route?.isTokenInHeaderOnly && !isTokenInHeader) throw new ApiError('forbidden', TOKEN_IN_QUERY);
    if (route?.access !== 'publish') this.#burst.take(projectId, clock.nowMs());
    return { projectId, scope, tokenName, tokenHash, isTokenInHeader, accountsVersion, runKey: undefined };
  }

  #handle(
    { request, response, connection }: Exchange,
    match: Match,
    { route, caller, ...own }: { route: Route; caller: Caller } & Pick<Call, 'body' | 'ignored'>,
  ): ApiResponse | Promise<ApiResponse> {
    const { method = '', headers, rawHeaders } = request;
    const { ids, rawDestination, rawQuery } = match;
    const { projectId } = caller;
    own.body.countFor(projectId);
    connection.projectId = projectId;
    const call: Call = {
      ...caller,
      ...own,
      method,
      ids,
      id: ids[0] ?? '',
      rawDestination,
      rawQuery,
      rawHeaders,
      callerIp: this.#callerIp(request.socket.remoteAddress, headers['x-forwarded-for'] as string | undefined),
      calledUrl: () => this.#calledUrl(request),
      hangUp: () => hangUpOf(response),
      leaving: () => connection.leaving,
      readmit: () => this.#readmit(request, match, projectId),
    };
    const slices = this.#slices();
    this.#known.get(route)?.findIgnored(rawHeaders, rawQuery, own.ignored);
    const handle = (): ApiResponse | Promise<ApiResponse> =>
      route.isLong
        ? this.#responses.runWithMemory(projectId, LONG_RESPONSE_BYTES, call.hangUp(), () => route.handle(call))
        : route.handle(call);
    return slices.isOver ? slices.next().then(handle) : handle();
  }

  async #readmit({ method = '', headers }: IncomingMessage, match: Match, projectId: ProjectId): Promise<number> {
    const { accounts } = this.#options;
    await accounts.refresh?.();
    const admission = authenticate(accounts, headers.authorization, match.rawQuery);
    if (admission?.caller.projectId !== projectId) throw unauthenticated();
    authorize(admission.caller, method, match.routes.get(method)?.access);
    return accounts.sharedVersion ?? 0;
  }
}

function hangUpOf(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  // If the connection is already closed, no `close` event follows.
  if (response.closed) controller.abort();
  else response.once('close', () => controller.abort());
  return controller.signal;
}

function noRoute({ routes }: Match): ApiResponse {
  if (routes.size === 0) return refusal(404, 'not found');
  return refusal(405, 'Method Not Allowed', { allow: [...routes.keys()].join(', ') });
}

/**
 * Checks the rules that Node does not check, and the rules whose violation Node would answer without JSON
 * (contract M 20.2). Throws `ApiError`.
 */
function checkHead({ rawHeaders, headers, httpVersion }: IncomingMessage, { headerBytesMax }: ApiLimits): void {
  let bytes = 0;
  for (const text of rawHeaders) bytes += text.length;
  if (bytes > headerBytesMax || rawHeaders.length > 2 * HEADER_LINES_MAX) {
    throw headersTooLarge({ bytesMax: headerBytesMax, linesMax: HEADER_LINES_MAX });
  }
  if (headers.host === undefined && httpVersion === '1.1') {
    throw new ApiError('invalid_request', 'the Host header is missing');
  }
}
