/**
 * Saves the headers that create a schedule for a URL group, and parses them again at each trigger, together with the
 * group's default headers at that time. The schedule's own headers take precedence (contract M 4.1, 13.4).
 */

import { newHeaderMap } from '../headers.ts';
import { hasConfigPrefix, readConfigName } from './config-names.ts';
import { type ConfigOption, OPTIONS, SCHEDULE_OPTIONS } from './config-options.ts';
import type { OptionsInput } from './config-scopes.ts';
import { withAllHeaders } from './forwarding.ts';
import { readPublishOptions } from './options.ts';
import type { HeaderMap, PublishOptions } from './settings.ts';

/**
 * The config headers of the request that created a schedule, and the headers that `Upstash-Header-Forward` could
 * forward, without an API token.
 */
export interface SavedHeaders {
  /** Names and values alternate. */
  rawHeaders: string[];
  queryConfig: [name: string, value: string][];
  /** Whether `ce-*` headers are forwarded. */
  forwardsCloudEvents?: true;
}

/** The keys of options that the messages of a schedule do not use. */
const SCHEDULE_ONLY_KEYS: ReadonlySet<string> = new Set(
  [...Object.values<ConfigOption>(SCHEDULE_OPTIONS), OPTIONS.deduplicationId, OPTIONS.contentBasedDeduplication].map(
    ({ key }) => key,
  ),
);

/** Quotas were checked when the schedule was created and when the group's headers were set. */
const NO_QUOTAS = { retriesMax: 0, delayMsMax: 0, timeoutMsMax: 0 };

export function selectSavedHeaders(input: OptionsInput): SavedHeaders {
  const saved: SavedHeaders = { rawHeaders: [], queryConfig: [] };
  const { rawHeaders } = input;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    if (isMessageOption(name) || name.toLowerCase() === 'content-type') saved.rawHeaders.push(name, value);
  }
  if (input.plainHeaders?.cloudEvents) saved.forwardsCloudEvents = true;
  for (const [name, values] of Object.entries(withAllHeaders(newHeaderMap(), input))) {
    if (name === 'Content-Type') continue;
    for (const value of values) saved.rawHeaders.push(name, value);
  }
  for (const [name, value] of input.queryConfig) if (isMessageOption(name)) saved.queryConfig.push([name, value]);
  return saved;
}

/**
 * The options of the messages of one trigger. `own`: the options with which the schedule was created, without the
 * group's headers. Throws `ApiError` if the group's headers contradict the headers of the creation.
 */
export function readTriggerOptions(
  { rawHeaders, queryConfig, forwardsCloudEvents }: SavedHeaders,
  groupDefaults: HeaderMap,
  { own, nowMs }: { own: Pick<PublishOptions, 'settings'>; nowMs: number },
): PublishOptions {
  const { dialect, maxRetries } = own.settings;
  // A saved `Authorization` header is for the destination.
  const input: OptionsInput = { rawHeaders, queryConfig, tokenInQuery: true, proxyHeaders: [], groupDefaults };
  if (forwardsCloudEvents) input.plainHeaders = { cloudEvents: true, baggage: false };
  const read = readPublishOptions(input, 'publish', { ...NO_QUOTAS, retriesDefault: maxRetries }, nowMs);
  const { deduplication: _ignored, ...options } = read; // Messages of a schedule are never deduplicated (contract M 11.8).
  // The trace belongs to the creation; later messages are not part of the trace.
  const { trace: _trace, ...settings } = options.settings;
  return { ...options, settings: { ...settings, dialect } };
}

function isMessageOption(name: string): boolean {
  if (!hasConfigPrefix(name)) return false;
  const { path, option } = readConfigName(name);
  return path.length > 0 || !SCHEDULE_ONLY_KEYS.has(option);
}
