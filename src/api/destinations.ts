/** May this destination be called, as far as can be told at publish time (messaging.md 5.2)? */
import { checkUrl } from '../protocol/destination.ts';
import { ApiError } from '../protocol/errors.ts';
import type { CheckDestination } from './route.ts';

/** Throws `ApiError` 400 with the reason: at once, or later through a promise when names have to be looked up. */
export function checkAddress(url: string, check: CheckDestination): undefined | Promise<void> {
  const reason = check(checkUrl(url));
  return reason instanceof Promise ? reason.then(refuse) : refuse(reason);
}

function refuse(reason: string | undefined): undefined {
  if (reason !== undefined) throw new ApiError('invalid_destination', `invalid destination url: ${reason}`);
}

/** The answer to a publish to a URL group that does not exist (messaging.md 5.3). */
export function groupNotFound(name: string): ApiError {
  return new ApiError('not_found', `topic ${name} not found`);
}
