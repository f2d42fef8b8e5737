/** What will the message be that brings a run the result of a wait or an invocation (contract W 14.6, 14.8)? */
import { type Quotas, readPublishOptions } from '../options.ts';
import type { Dialect, ResultPart } from '../settings.ts';

export interface ResultRequest {
  /** Where it is to be delivered: checked, as a URL. */
  url: string;
  /** The headers of a publish, names and values in turn. */
  rawHeaders: readonly string[];
  /** That of the request which the result follows from (contract W 1.4). */
  dialect: Dialect;
}

/**
 * Reads the headers with which a library wants a result to be delivered, as those of a step, before the run's own
 * configuration is applied. When it goes out is not theirs to say. Throws `ApiError` 422, and 412 for an exceeded quota.
 */
export function readResultPart({ url, rawHeaders, dialect }: ResultRequest, quotas: Quotas, nowMs: number): ResultPart {
  const input = { rawHeaders, queryConfig: [], tokenInQuery: false, proxyHeaders: [] };
  const { header, settings } = readPublishOptions(input, 'result', quotas, nowMs);
  const { callback: _callback, ...kept } = settings;
  header['Content-Type'] ??= ['application/json'];
  return { url, header, settings: { ...kept, dialect } };
}
