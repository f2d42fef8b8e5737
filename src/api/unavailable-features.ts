/**
 * What the contract knows and this version cannot do yet. Accepting such a message and dropping the option would be
 * worse than refusing it, so it is refused, in this one place.
 */
import { ApiError } from '../protocol/errors.ts';
import type { PublishOptions } from '../protocol/settings.ts';

interface Feature {
  /** Without the dialect's prefix. */
  header: string;
  isAskedFor: (options: PublishOptions) => boolean;
}

const FEATURES: readonly Feature[] = [
  { header: 'Callback', isAskedFor: ({ settings }) => settings.callback !== undefined },
  { header: 'Failure-Callback', isAskedFor: ({ settings }) => settings.failureCallback !== undefined },
  { header: 'Flow-Control-Key', isAskedFor: ({ settings }) => settings.flowControl !== undefined },
];

const WORKFLOW_HEADER = /^(?:upstash|waypost)-workflow-/i;

/**
 * Throws `ApiError` 400 that names the header of the first option this version cannot honour. `rawHeaders` are names
 * and values in turn, `queryConfig` the config parameters of the query.
 */
export function refuseUnavailable(
  options: PublishOptions,
  rawHeaders: readonly string[],
  queryConfig: readonly (readonly [string, string])[],
): void {
  const prefix = options.settings.dialect === 'upstash' ? 'Upstash' : 'Waypost';
  for (const { header, isAskedFor } of FEATURES) {
    if (isAskedFor(options)) throw notAvailable(`${prefix}-${header}`);
  }
  for (let i = 0; i < rawHeaders.length; i += 2) refuseWorkflow(rawHeaders[i] ?? '');
  for (const [name] of queryConfig) refuseWorkflow(name);
}

function refuseWorkflow(name: string): void {
  // The length spares nearly all names the expression.
  if (name.length > 17 && WORKFLOW_HEADER.test(name)) throw notAvailable(name);
}

/** Throws `ApiError` 400 when a batch item names a queue. */
export function refuseQueue(queue: string): void {
  if (queue !== '') throw new ApiError('invalid_request', 'queue is not available in this version');
}

function notAvailable(header: string): ApiError {
  return new ApiError('invalid_header', `${header} is not available in this version`);
}
