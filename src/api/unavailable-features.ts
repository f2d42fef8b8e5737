/**
 * What the contract knows and this version cannot do yet. Accepting such a message and dropping the option would be
 * worse than refusing it, so it is refused, in this one place.
 */
import { ApiError } from '../protocol/errors.ts';

const WORKFLOW_HEADER = /^(?:upstash|waypost)-workflow-/i;

/**
 * Throws `ApiError` 400 that names the first header this version cannot honour. `rawHeaders` are names and values in
 * turn, `queryConfig` the config parameters of the query.
 */
export function refuseUnavailable(
  rawHeaders: readonly string[],
  queryConfig: readonly (readonly [string, string])[],
): void {
  for (let i = 0; i < rawHeaders.length; i += 2) refuseWorkflow(rawHeaders[i] ?? '');
  for (const [name] of queryConfig) refuseWorkflow(name);
}

function refuseWorkflow(name: string): void {
  // The length spares nearly all names the expression.
  if (name.length > 17 && WORKFLOW_HEADER.test(name)) throw notAvailable(name);
}

function notAvailable(header: string): ApiError {
  return new ApiError('invalid_header', `${header} is not available in this version`);
}
