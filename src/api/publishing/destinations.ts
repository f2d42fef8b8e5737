/** Refuses destinations and callbacks that may not be called, as far as this is known at publish time (contract M 5.2). */
import type { Endpoint } from '../../engine/messages/url-groups.ts';
import { ApiError, invalidHeader } from '../../protocol/errors.ts';
import { quoted } from '../../protocol/headers.ts';
import { prefixOf } from '../../protocol/options/dialect.ts';
import type { CallbackSettings, MessageSettings } from '../../protocol/options/settings.ts';
import { checkUrl } from '../../protocol/urls/destination.ts';
import { maskPassword } from '../../protocol/urls/masked-url.ts';
import type { CheckDestination } from '../route.ts';

/** Throws `ApiError` 400 with the reason: at once, or through a promise if a host name must be resolved. */
export function checkAddress(url: string, check: CheckDestination): undefined | Promise<void> {
  const reason = check(checkUrl(url));
  return reason instanceof Promise ? reason.then(throwRefusal) : throwRefusal(reason);
}

/** Checks each endpoint. The error names the refused endpoint. */
export async function checkEndpoints(endpoints: readonly Endpoint[], check: CheckDestination): Promise<void> {
  await Promise.all(
    endpoints.map(async ({ url, name }) => {
      try {
        await checkAddress(url, check);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        throw new ApiError(error.code, `${error.message} (endpoint ${quoted(name ?? maskPassword(url))})`);
      }
    }),
  );
}

/**
 * Checks the callbacks of a message and their own callbacks. The error names the header (contract M 4.2). Call this
 * wherever message options are read, also for options that are saved for later messages.
 */
export function checkCallbacks(settings: MessageSettings, check: CheckDestination): undefined | Promise<void> {
  // Nearly every message has no callbacks, and such a publish must not wait for a promise.
  if (settings.callback === undefined && settings.failureCallback === undefined) return undefined;
  return checkCallbacksOf(settings, prefixOf(settings.dialect), check);
}

async function checkCallbacksOf(
  { callback, failureCallback }: Pick<MessageSettings, 'callback' | 'failureCallback'>,
  header: string,
  check: CheckDestination,
): Promise<void> {
  await Promise.all([
    callback && checkCallback(callback, `${header}-Callback`, check),
    failureCallback && checkCallback(failureCallback, `${header}-Failure-Callback`, check),
  ]);
}

async function checkCallback(callback: CallbackSettings, header: string, check: CheckDestination): Promise<void> {
  const reason = await check(checkUrl(callback.url));
  if (reason !== undefined) throw invalidHeader(header, reason);
  await checkCallbacksOf(callback, header, check);
}

function throwRefusal(reason: string | undefined): undefined {
  if (reason !== undefined) throw new ApiError('invalid_destination', `invalid destination url: ${reason}`);
}

/** The error of a request to a URL group that does not exist (contract M 5.3). */
export function groupNotFound(name: string): ApiError {
  return new ApiError('not_found', `topic ${name} not found`);
}
