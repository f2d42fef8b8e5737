/**
 * A client's mistake, by a catalogue of codes: `{"error": message}` with `status`.
 *
 * Parsers throw it; `api/` writes the answer. The message names the field, the rule and the given value
 * (contract M 1.3, 25). Any other thrown error is a fault in our code, and is answered 500 without details.
 */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly status: number;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.status = STATUS_BY_CODE[code];
  }
}

/**
 * Each kind of refusal and its HTTP status (contract M 1.4). docs/errors.md is made of these comments: what has happened,
 * and what the caller does about it.
 */
const STATUS_BY_CODE = {
  /**
   * The destination is not a URL that may be called, or not the name of a URL group.
   * Remedy: write it with `http://` or `https://` behind `/v2/publish/`. Where the address is private, the operator allows it with
   * [`WAYPOST_ALLOW_DESTINATIONS`](settings.md).
   */
  invalid_destination: 400,
  /**
   * A config header, or the parameter of the query in its place, has a value that it cannot have, or means nothing in this
   * request.
   * Remedy: correct the header that the text names; `/docs` on the server lists those of each request.
   */
  invalid_header: 400,
  /**
   * A parameter of the query has a value that it cannot have. An action on many also refuses what it does not know, since leaving it
   * out would widen the action.
   * Remedy: correct the parameter that the text names.
   */
  invalid_query: 400,
  /**
   * The body is not the JSON that this request needs.
   * Remedy: correct the member that the text names; of a batch it says which item.
   */
  invalid_body: 400,
  /**
   * The name of a queue, a URL group, a flow-control key, a schedule, an event or a label has characters that names do not have.
   * Remedy: use 1 to 255 of the letters A to Z and a to z, digits, hyphen, period and underscore; `.` and `..` are possible only as a
   * label. What an older version has created under such a name `waypost queues delete ..` deletes, and likewise for groups and schedules.
   */
  invalid_name: 400,
  /**
   * Each part of the request is right, but what it asks for is not possible.
   * Remedy: read what the text says of it; sending the same again does not help.
   */
  invalid_request: 400,
  /**
   * The run of the message is over: it ended, failed or was cancelled. A workflow library stops quietly when it reads this
   * (contract W 4.7).
   * Remedy: none; `waypost explain <run>` says how the run ended.
   */
  run_over: 400,
  /**
   * There is no token in the request, or one that this server does not know.
   * Remedy: send `Authorization: Bearer <token>`. A token of another server, a revoked one and one with a line break at its end look the same from
   * here; `waypost tokens list` on the server's machine says which there are.
   */
  unauthenticated: 401,
  /**
   * The token is known, but its scope is not enough; or a page in a browser asks that may not, or for a server of another name.
   * Remedy: use a token with the scope that the request needs ([projects](projects.md)); for pages, have the operator set what the text names.
   */
  forbidden: 403,
  /**
   * What the request names is not there: it never was, it is finished and no longer kept, or it belongs to another project.
   * Remedy: take the id from an answer or a list. Logs, and with them finished messages and runs, are dropped after their retention.
   */
  not_found: 404,
  /** The path has no such method. Remedy: use one that the header `Allow` names. */
  method_not_allowed: 405,
  /** What the request would take away is still needed. Remedy: do first what the text says. */
  conflict: 409,
  /**
   * A limit that the operator has set, or that the server has, is reached.
   * Remedy: ask for less, or have the operator raise it; [settings](settings.md) has the limits by name.
   */
  quota_exceeded: 412,
  /**
   * As the 400s, in a request of a running workflow: to its library a 400 says that the run is over.
   * Remedy: as the text says; most come from a library that the server does not know yet, or from what was given to a step.
   */
  unprocessable: 422,
  /**
   * The body is larger than the server takes.
   * Remedy: send a reference to the data in place of the data, or have the operator raise the limit that the text names.
   */
  body_too_large: 413,
  /** There are too many headers, or they are too long. Remedy: forward fewer. */
  headers_too_large: 431,
  /**
   * The project has used up its messages of this day, or its requests of this second.
   * Remedy: wait until the time in `RateLimit-Reset` or `Burst-RateLimit-Reset` (Unix seconds), or have the operator raise the limit.
   */
  rate_limited: 429,
  /**
   * The server cannot take the request now: it is full, is ending, or its store does not save. Nothing of the request was done, unless the text
   * says so.
   * Remedy: send it again after the seconds in `Retry-After`, with a deduplication id if it publishes.
   * If it stays so, look at the disk and at the log of the server.
   */
  unavailable: 503,
} as const;

export type ErrorCode = keyof typeof STATUS_BY_CODE;

/** `invalid <Header-Name>: <reason>`, the form in which every refused header is reported. */
export function invalidHeader(header: string, reason: string): ApiError {
  return new ApiError('invalid_header', `invalid ${header}: ${reason}`);
}

/** `invalid request body: <reason>`. */
export function invalidBody(reason: string): ApiError {
  return new ApiError('invalid_body', `invalid request body: ${reason}`);
}

/** `quota <name> exceeded, current limit: <n>` (contract M 20.1). */
export function quotaExceeded(quota: string, limit: number): ApiError {
  return new ApiError('quota_exceeded', `quota ${quota} exceeded, current limit: ${limit}`);
}

/** The answer to an append without a run id (contract W 4.4.1): there is no run to continue. */
export function runIdMissing(): ApiError {
  return new ApiError('run_over', 'failed to publish to url: a Workflow-RunId header must be provided');
}

/**
 * The answer to a message for a workflow run that is over (contract W 4.4). Clients know this text, with its doubled
 * article.
 */
export function runOver(): ApiError {
  return new ApiError('run_over', 'failed to publish to url: can not append to a a cancelled workflow');
}
