/** What the headers of a DLQ retry replace of the stored message (messaging.md 17, item 4). */
import type { DeadRetryOverride } from '../engine/commands.ts';
import { readPublishOptions } from '../protocol/options.ts';
import type { Services } from './route.ts';

/** Stands in for the default number of retries, so that "not given" can be told from any number. */
const NOT_GIVEN = -1;

/** Reads `Upstash-Retries`, `-Retry-Delay` and `-Timeout`; the other options keep their stored values. Throws `ApiError`. */
export function readRetryOverride(
  rawHeaders: readonly string[],
  { quotas, clock }: Pick<Services, 'quotas' | 'clock'>,
): DeadRetryOverride {
  const input = { rawHeaders, queryConfig: [], tokenInQuery: false, proxyHeaders: [] };
  const asked = { ...quotas, retriesDefault: NOT_GIVEN };
  const { settings } = readPublishOptions(input, 'publish', asked, clock.nowMs());
  const override: DeadRetryOverride = {};
  if (settings.maxRetries !== NOT_GIVEN) override.maxRetries = settings.maxRetries;
  if (settings.retryDelayExpression !== undefined) override.retryDelayExpression = settings.retryDelayExpression;
  if (settings.timeoutMs !== undefined) override.timeoutMs = settings.timeoutMs;
  return override;
}
