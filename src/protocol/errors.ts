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

/** Each kind of refusal and its HTTP status (contract M 1.4). */
const STATUS_BY_CODE = {
  invalid_destination: 400,
  invalid_header: 400,
  invalid_query: 400,
  invalid_body: 400,
  invalid_name: 400,
  invalid_request: 400,
  /** Tells a workflow library that its run is over; the library then stops quietly (contract W 4.7). */
  run_over: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  quota_exceeded: 412,
  /** For requests of a running workflow, in place of 400. */
  unprocessable: 422,
  body_too_large: 413,
  headers_too_large: 431,
  rate_limited: 429,
  /** The store, the memory budget or the shutdown asks the client to come back; answered with `Retry-After`. */
  unavailable: 503,
} as const;

export type ErrorCode = keyof typeof STATUS_BY_CODE;

/** `invalid <Header-Name>: <reason>`, the form in which every refused header is reported. */
export function invalidHeader(header: string, reason: string): ApiError {
  return new ApiError('invalid_header', `invalid ${header}: ${reason}`);
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
