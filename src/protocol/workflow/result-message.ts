/** Reads the message that will deliver the result of a wait or an invocation to a run (contract W 14.6, 14.8). */
import { type Quotas, readPublishOptions } from '../options/options.ts';
import type { Dialect, ResultMessage } from '../options/settings.ts';

export interface ResultRequest {
  /** The checked URL to which the result is delivered. */
  url: string;
  /** Headers as in a publish; names and values alternate. */
  rawHeaders: readonly string[];
  /** The dialect of the request that causes the result (contract W 1.4). */
  dialect: Dialect;
}

/**
 * Reads the headers that a library wants in the message with a result. They are read like the headers of a step before
 * the run's configuration is applied. Delays have no effect. Throws `ApiError` 422, and 412 for an exceeded quota.
 */
export function readResultMessage(
  { url, rawHeaders, dialect }: ResultRequest,
  quotas: Quotas,
  nowMs: number,
): ResultMessage {
  const input = { rawHeaders, queryConfig: [], tokenInQuery: false, proxyHeaders: [] };
  const { header, settings } = readPublishOptions(input, 'result', quotas, nowMs);
  const { callback: _callback, ...others } = settings;
  header['Content-Type'] ??= ['application/json'];
  return { url, header, settings: { ...others, dialect } };
}
