/**
 * An error caused by the caller: the response is `{"error": message}` with `status`.
 *
 * Parsers throw it; `api/` writes the response. The message names the field, the rule and the rejected value
 * (contract M 1.3, 25). Any other thrown error is a fault in our code, and becomes a 500 without details.
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
 * The HTTP status of each error code (contract M 1.4). docs/errors.md is generated from these comments: the meaning,
 * and what the caller can do.
 */
const STATUS_BY_CODE = {
  /**
   * The destination is neither an allowed URL nor the name of a URL group.
   * Remedy: begin it with `http://` or `https://`, directly after `/v2/publish/`. If the address is private, the operator can allow it with
   * [`WAYPOST_ALLOW_DESTINATIONS`](settings.md).
   */
  invalid_destination: 400,
  /**
   * A configuration header, or the query parameter that replaces it, has an invalid value, or is not supported by this request.
   * Remedy: correct the header that the text names; `/docs` on the server lists the headers of each request.
   */
  invalid_header: 400,
  /**
   * A query parameter has an invalid value. Bulk actions also refuse unknown parameters, because ignoring one would affect more items.
   * Remedy: correct the parameter that the text names.
   */
  invalid_query: 400,
  /**
   * The body is not the JSON that this request requires.
   * Remedy: correct the member that the text names; in a batch it also names the item.
   */
  invalid_body: 400,
  /**
   * The name of a queue, a URL group, a flow-control key, a schedule, an event or a label contains invalid characters.
   * Remedy: use 1 to 255 letters A to Z and a to z, digits, hyphens, periods and underscores; only a label may be `.` or `..`. To delete a
   * queue, group or schedule that an older version created under such a name, use the command line, for example `waypost queues delete ..`.
   */
  invalid_name: 400,
  /**
   * Each part of the request is valid, but the combination is not possible.
   * Remedy: follow the text; sending the same request again does not help.
   */
  invalid_request: 400,
  /**
   * The run of the message has ended, failed or been cancelled. A workflow library stops silently when it gets this (contract W 4.7).
   * Remedy: none; `waypost explain <run>` says how the run ended.
   */
  run_over: 400,
  /**
   * The request has no token, or one that this server does not know.
   * Remedy: send `Authorization: Bearer <token>`. The server cannot tell apart a token of another server, a revoked token and a token that
   * ends in a line break; `waypost tokens list` on the server's machine lists the valid ones.
   */
  unauthenticated: 401,
  /**
   * The token is valid but its scope is too small, or the request comes from a web page that is not allowed, or names another host.
   * Remedy: use a token with the required scope ([projects](projects.md)); for web pages, ask the operator to set what the text names.
   */
  forbidden: 403,
  /**
   * The item does not exist, is finished and no longer kept, or belongs to another project.
   * Remedy: take the id from a response or a list. Finished messages and runs are deleted with their logs.
   */
  not_found: 404,
  /** The path does not support this method. Remedy: use one from the `Allow` header. */
  method_not_allowed: 405,
  /** The item to remove is still in use. Remedy: follow the text. */
  conflict: 409,
  /**
   * A limit of the operator or the server is reached.
   * Remedy: ask for less, or have the operator raise the limit; [settings](settings.md) lists the limits by name.
   */
  quota_exceeded: 412,
  /**
   * Like a 400, for a request of a running workflow, whose library would read a 400 as the end of the run.
   * Remedy: follow the text. Most are caused by a library version that the server does not know yet, or by the arguments of a step.
   */
  unprocessable: 422,
  /**
   * The body is larger than the server accepts.
   * Remedy: send a reference to the data instead, or have the operator raise the limit that the text names.
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
   * The server cannot accept the request now: it is overloaded or stopping, or its store cannot write. The request had no effect, unless
   * the text says otherwise.
   * Remedy: retry after the seconds in `Retry-After`, with a deduplication id if it publishes. If the error persists, check the disk and
   * the server log.
   */
  unavailable: 503,
} as const;

export type ErrorCode = keyof typeof STATUS_BY_CODE;

/** `invalid <Header-Name>: <reason>`, the text for every invalid header. */
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

/** The response to an append without a run id (contract W 4.4.1). */
export function runIdMissing(): ApiError {
  return new ApiError('run_over', 'failed to publish to url: a Workflow-RunId header must be provided');
}

/**
 * The response to a message for a workflow run that has ended (contract W 4.4). Clients match this text, including the
 * doubled article.
 */
export function runOver(): ApiError {
  return new ApiError('run_over', 'failed to publish to url: can not append to a a cancelled workflow');
}
