/** Validates a request that makes a run wait for an event (contract W 14.6). */
import type { Millis } from '../../engine/model.ts';
import type { WaitCommand } from '../../engine/runs/stores.ts';
import { ApiError, invalidBody } from '../../protocol/errors.ts';
import { addHeader, canonicalHeaderName, newHeaderMap, quoted } from '../../protocol/headers.ts';
import { objectOf } from '../../protocol/json-objects.ts';
import { hasConfigPrefix, readConfigName } from '../../protocol/options/config-names.ts';
import { prefixOf } from '../../protocol/options/dialect.ts';
import {
  checkDelay,
  itemRawHeaders,
  type OptionsInput,
  type Quotas,
  readPublishOptions,
} from '../../protocol/options/options.ts';
import type { Dialect, HeaderMap, PublishOptions, RunAppend } from '../../protocol/options/settings.ts';
import { isDateMs, parseDurationMs } from '../../protocol/times/durations.ts';
import { checkUrl, withoutFragment } from '../../protocol/urls/destination.ts';
import { readResultMessage } from '../../protocol/workflow/result-message.ts';

/** The client libraries' own default. */
const TIMEOUT_DEFAULT = '7d';

/** The quotas and the time with which a whole request is checked. */
export interface WaitContext {
  quotas: Quotas;
  /** The time of acceptance. */
  nowMs: Millis;
}

/**
 * The wait for `eventId`, from the headers and the parsed body of a request. Throws `ApiError` 400 or 422 that names the
 * mistake, and 412 for a quota. Addresses are checked only at delivery, because a library would take a refusal here for
 * the end of the run.
 */
export function readWait(eventId: string, input: OptionsInput, body: unknown, context: WaitContext): WaitCommand {
  const { quotas, nowMs } = context;
  const options = readPublishOptions(input, 'publish', quotas, nowMs);
  const { header, settings } = options;
  const { dialect } = settings;
  const run = runAppendOf(options);
  const members = objectOf(body, 'a JSON object is needed');
  const { step, stepId } = stepMember(members['step']);
  const url = urlMember(members, 'url');
  if (url === undefined) throw invalidBody('url is missing');
  const timeout = timeoutMember(members['timeout']);
  const rawHeaders = members['timeoutHeaders'] ? itemRawHeaders(members['timeoutHeaders']) : input.rawHeaders;
  const command: WaitCommand = {
    runId: run.runId,
    eventId,
    timeout,
    timeoutMs: timeoutMsOf(timeout, context),
    step,
    stepId,
    features: run.features,
    notified: { url, header, settings },
    timedOut: readResultMessage({ url: urlMember(members, 'timeoutUrl') ?? url, rawHeaders, dialect }, quotas, nowMs),
    headers: shownHeaders(input.rawHeaders, { dialect, runId: run.runId, url }),
    timeoutHeaders: shownHeaders(rawHeaders, { dialect, runId: run.runId, url }),
  };
  if (run.createdAtMs !== undefined) command.createdAtMs = run.createdAtMs;
  const timeoutBody = base64Member(members['timeoutBody']);
  if (timeoutBody !== undefined) command.timeoutBody = timeoutBody;
  return command;
}

function runAppendOf({ run }: PublishOptions): RunAppend {
  if (run?.kind !== 'append' || run.callType !== 'step') {
    throw new ApiError('invalid_header', 'a wait needs Upstash-Workflow-Init: false, and the call type step');
  }
  return run;
}

/**
 * The config headers among `rawHeaders` as `GET /v2/waiters` shows them: in the message's dialect, with the run's id and
 * URL.
 */
function shownHeaders(rawHeaders: readonly string[], run: { dialect: Dialect; runId: string; url: string }): HeaderMap {
  const prefix = prefixOf(run.dialect);
  const map = newHeaderMap();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = [rawHeaders[at], rawHeaders[at + 1]];
    if (hasConfigPrefix(name)) {
      if (readConfigName(name).option.startsWith('telemetry-')) continue;
      addOnce(map, `${prefix}${name.slice(name.indexOf('-'))}`, value);
    } else if (name.toLowerCase() === 'content-type') {
      addOnce(map, name, value);
    }
  }
  map[`${prefix}-Workflow-Runid`] = [run.runId];
  map[`${prefix}-Workflow-Url`] ??= [run.url];
  return map;
}

/** Adds a value unless the header already has the value: clients may send one header under two spellings of its name. */
function addOnce(map: HeaderMap, name: string, value: string): void {
  if (!map[canonicalHeaderName(name)]?.includes(value)) addHeader(map, name, value);
}

function urlMember(members: Record<string, unknown>, name: string): string | undefined {
  const value = members[name];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw invalidBody(`${name} must be a string`);
  const url = withoutFragment(value);
  checkUrl(url);
  return url;
}

/** A number without a unit is in seconds. */
export function timeoutMember(value: unknown): string {
  if (value === undefined || value === null || value === '') return TIMEOUT_DEFAULT;
  if (typeof value === 'number') return `${value}s`;
  if (typeof value !== 'string') throw invalidBody('timeout must be a duration');
  return value;
}

export function timeoutMsOf(timeout: string, { quotas, nowMs }: WaitContext): Millis {
  const timeoutMs = parseDurationMs(timeout);
  if (timeoutMs === undefined || !isDateMs(nowMs + timeoutMs)) {
    throw invalidBody(`timeout must be a duration such as 20s or 7d, not ${quoted(timeout)}`);
  }
  checkDelay(timeoutMs, quotas);
  return timeoutMs;
}

/** The step, whose members are returned unchanged to the library that made them. */
export function stepMember(value: unknown): Pick<WaitCommand, 'step' | 'stepId'> {
  const members = objectOf(value, 'step must be an object');
  const { stepId } = members;
  if (typeof stepId !== 'number' || !Number.isSafeInteger(stepId) || stepId < 1) {
    throw invalidBody('step.stepId must be a whole number of at least 1');
  }
  return { step: Buffer.from(JSON.stringify(members)), stepId };
}

function base64Member(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string' || Buffer.from(value, 'base64').toString('base64') !== value) {
    throw invalidBody('timeoutBody must be padded base64');
  }
  return value;
}
