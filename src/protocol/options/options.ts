/** Reads all options of one message from the headers and the query of its publish. */
import { ApiError, invalidBody, invalidHeader, quotaExceeded } from '../errors.ts';
import { newHeaderMap } from '../headers.ts';
import { checkCron } from '../times/cron-times.ts';
import { isDateMs } from '../times/durations.ts';
import { readTraceContext } from '../trace-context.ts';
import { withoutMarks, workflowHeaders } from '../workflow/forwarded-headers.ts';
import { fetchesCallResults, PROTOCOL_VERSION, RETRIES_DEFAULT, setsStepSettings } from '../workflow/generations.ts';
import { isSentByRun, toRunError } from '../workflow/run-errors.ts';
import { readRunRequest, readTriggerRequest } from '../workflow/run-request.ts';
import type { CallbackKind } from './config-names.ts';
import {
  ALL_OPTIONS,
  ATTEMPT_OPTIONS,
  attemptSettingsOf,
  type ConfigOption,
  DELIVERY_OPTIONS,
  OPTIONS,
  refuseFor,
  SCHEDULE_OPTIONS,
} from './config-options.ts';
import { collectConfiguration, type OptionsInput, type Scope } from './config-scopes.ts';
import { prefixOf } from './dialect.ts';
import { explicitHeaders, forwardedHeaders, withAllHeaders } from './forwarding.ts';
import type {
  CallbackSettings,
  Deduplication,
  DeliverySettings,
  HeaderMap,
  MessageSettings,
  PublishOptions,
  RunRequest,
  StepSettings,
} from './settings.ts';

export type { OptionsInput } from './config-scopes.ts';

/** Limits of the project that options can exceed (contract M 20.1); 0 means unlimited. */
export interface Quotas {
  /** Retries of a message that sets no number of retries. */
  retriesDefault: number;
  retriesMax: number;
  /** The longest delay of a message, from acceptance. */
  delayMsMax: number;
  /** Longer timeouts are reduced to this maximum. */
  timeoutMsMax: number;
}

/**
 * The kind of request. A publish with a cron expression is read as a schedule (contract M 4.2). A trigger starts a
 * workflow run (contract W 5.2). A result is a message that a run has requested (contract W 14.6, 14.8).
 */
export type OptionsContext = 'publish' | 'enqueue' | 'schedule' | 'trigger' | 'result';

/** Throws `ApiError` 412 for a message that is due later than the quota allows. */
export function checkDelay(delayMs: number, { delayMsMax }: Pick<Quotas, 'delayMsMax'>): void {
  if (delayMsMax > 0 && delayMs > delayMsMax) throw quotaExceeded('maxDelay', Math.floor(delayMsMax / 1000));
}

const CALLBACK_DEPTH_MAX = 3;

const { timeout: _timeout, retries: _retries, ...others } = ATTEMPT_OPTIONS;
const OTHER_ATTEMPT_OPTIONS = Object.values(others);
const LAST_OPTIONS = Object.values(DELIVERY_OPTIONS);

/**
 * Reads everything that configures one message, in both dialects (contract M 4, 9.4). Request headers take precedence
 * over query parameters, and query parameters over group defaults. Throws the first error in the order of contract M 4.2,
 * which names the header as the client knows it. A 412 for an exceeded quota is thrown only if there is no other error
 * (contract M 25). A message of a running workflow is rejected with 400 only if its run has ended (contract W 4.7).
 * `nowMs` is the time of acceptance.
 */
export function readPublishOptions(
  input: OptionsInput,
  context: OptionsContext,
  quotas: Quotas,
  nowMs: number,
): PublishOptions {
  try {
    return new OptionsReader(quotas, nowMs).read(input, context);
  } catch (error) {
    const isOfRun = context === 'result' || (context !== 'trigger' && isSentByRun(input));
    throw isOfRun ? toRunError(error) : error;
  }
}

class OptionsReader {
  readonly #quotas: Quotas;
  readonly #nowMs: number;
  #exceeded: ApiError | undefined;
  /** Workflow messages, and their callbacks, have their own defaults and headers. */
  #isOfWorkflow = false;

  constructor(quotas: Quotas, nowMs: number) {
    this.#quotas = quotas;
    this.#nowMs = nowMs;
  }

  /** The order of the statements is the order of the checks. */
  read(input: OptionsInput, context: OptionsContext): PublishOptions {
    const configuration = collectConfiguration(input);
    const { scope, dialect } = configuration;
    const kind = context === 'publish' && OPTIONS.cron.raw(scope) !== undefined ? 'schedule' : context;
    refuseFor(kind, OPTIONS.workflowInit, scope);
    const isOfRun = kind === 'trigger' || kind === 'result';
    this.#isOfWorkflow = isOfRun || OPTIONS.workflowInit.raw(scope) !== undefined;

    const method = OPTIONS.method.read(scope);
    const explicitHeader = explicitHeaders(configuration, this.#headersOf(scope));
    const header = OPTIONS.headerForward.read(scope) ? withAllHeaders(explicitHeader, input) : explicitHeader;
    const retriesDefault = this.#isOfWorkflow ? RETRIES_DEFAULT : this.#quotas.retriesDefault;
    const settings: MessageSettings = { dialect, maxRetries: retriesDefault };
    const read: PublishOptions = { method, header, explicitHeader, settings };
    this.#readAttempts(scope, settings);
    const times = readTimes(scope, kind);
    // Messages of a schedule are never deduplicated, and a run finds its own duplicates (contract M 11.8, W 4.5, 4.6).
    const deduplication = kind === 'schedule' || this.#isOfWorkflow ? undefined : deduplicationOf(scope);
    if (deduplication !== undefined) read.deduplication = deduplication;
    this.#readCallbacks(scope, settings, 1, input.failureUrl);
    readSettings(scope, settings, LAST_OPTIONS);

    // The messages of a schedule do not belong to the trace of its creation.
    const { rawHeaders, plainHeaders } = input;
    const trace = plainHeaders && kind !== 'schedule' ? readTraceContext(header, rawHeaders, plainHeaders) : undefined;
    if (trace) settings.trace = trace;
    this.#checkHorizon(scope, times);
    Object.assign(read, times);
    if (kind === 'schedule') readSchedule(scope, read, this.#nowMs);
    if (this.#isOfWorkflow) this.#readRun(scope, read, kind);
    if (this.#exceeded !== undefined) throw this.#exceeded;
    return read;
  }

  /** Reads the message's role in its run. */
  #readRun(scope: Scope, read: PublishOptions, kind: OptionsContext): void {
    const { settings } = read;
    const run =
      kind === 'trigger'
        ? readTriggerRequest(scope)
        : kind === 'result'
          ? undefined
          : readRunRequest(scope, settings.dialect);
    if (run) read.run = run;
    if (run?.kind === 'append' && run.callType !== 'toCallback' && setsStepSettings(run.features))
      run.stepSettings = stepSettingsOf(scope, settings);
    asMessageOfRun(read, run, scope.options.get('telemetry-sdk')?.value);
  }

  /** Reads the options for the attempts of a message or a callback. Quotas limit the timeout and the retries. */
  #readAttempts(scope: Scope, settings: DeliverySettings): void {
    const { timeoutMsMax, retriesMax } = this.#quotas;
    const timeoutMs = OPTIONS.timeout.read(scope);
    if (timeoutMs !== undefined) settings.timeoutMs = timeoutMsMax > 0 ? Math.min(timeoutMs, timeoutMsMax) : timeoutMs;

    const maxRetries = OPTIONS.retries.read(scope);
    if (maxRetries !== undefined) {
      if (retriesMax > 0 && maxRetries > retriesMax) this.#exceed('maxRetries', retriesMax);
      else if (!Number.isFinite(maxRetries))
        throw invalidHeader(OPTIONS.retries.raw(scope)?.header ?? '', 'the number is too large');
      settings.maxRetries = maxRetries;
    }
    readSettings(scope, settings, OTHER_ATTEMPT_OPTIONS);
  }

  /** The headers to forward with a published message or a callback. */
  #headersOf(scope: Scope): HeaderMap {
    return this.#isOfWorkflow ? workflowHeaders(scope) : forwardedHeaders(scope);
  }

  /** `depth` counts from 1 for the callbacks of the published message. */
  #readCallbacks(
    scope: Scope,
    settings: Pick<CallbackSettings, 'callback' | 'failureCallback'>,
    depth: number,
    failureUrl?: string,
  ): void {
    const callback = this.#readCallback(scope, 'callback', depth);
    if (callback !== undefined) settings.callback = callback;
    const failureCallback = this.#readCallback(scope, 'failure-callback', depth, failureUrl);
    if (failureCallback !== undefined) settings.failureCallback = failureCallback;
  }

  /**
   * Checks the options of a callback even if there is no URL. If `urlDefault` is absent too, the options have no effect.
   */
  #readCallback(parent: Scope, kind: CallbackKind, depth: number, urlDefault?: string): CallbackSettings | undefined {
    const raw = OPTIONS[kind].raw(parent);
    const scope = parent.callbacks[kind];
    if (raw === undefined && scope === undefined) return undefined;
    if (depth > CALLBACK_DEPTH_MAX) {
      throw invalidHeader(
        raw?.header ?? scope?.firstHeader ?? '',
        `callbacks can be nested at most ${CALLBACK_DEPTH_MAX} levels deep`,
      );
    }
    const url = OPTIONS[kind].read(parent) ?? urlDefault;
    const settings: CallbackSettings = { url: url ?? '', method: 'POST', header: newHeaderMap() };
    if (scope !== undefined) this.#readCallbackOptions(scope, settings, depth);
    return url === undefined ? undefined : settings;
  }

  #readCallbackOptions(scope: Scope, settings: CallbackSettings, depth: number): void {
    settings.method = OPTIONS.method.read(scope);
    settings.header = this.#headersOf(scope);
    this.#readAttempts(scope, settings);
    if (!this.#isOfWorkflow) for (const option of ALL_OPTIONS) refuseFor('callback', option, scope);
    this.#readCallbacks(scope, settings, depth + 1);
    readSettings(scope, settings, LAST_OPTIONS);
    const features = this.#isOfWorkflow ? OPTIONS.featureSet.read(scope) : undefined;
    if (features !== undefined) settings.features = features;
  }

  #checkHorizon(scope: Scope, { delayMs = 0, notBeforeMs = this.#nowMs + delayMs }: Times): void {
    const { delayMsMax } = this.#quotas;
    if (delayMsMax > 0 && notBeforeMs - this.#nowMs > delayMsMax) {
      this.#exceed('maxDelay', Math.floor(delayMsMax / 1000));
    }
    // Without a quota, the time can be too late to be written as a date.
    else if (!isDateMs(notBeforeMs)) {
      const raw = OPTIONS.notBefore.raw(scope) ?? OPTIONS.delay.raw(scope);
      throw invalidHeader(raw?.header ?? '', 'too far ahead');
    }
  }

  /** Remembers the first exceeded quota, which is reported only if the request has no other error. */
  #exceed(quota: string, limit: number): void {
    this.#exceeded ??= quotaExceeded(quota, limit);
  }
}

/**
 * Removes the headers that a message of a run may not have; `run` is `undefined` for a result. `library` is the value of
 * the sender's `Upstash-Telemetry-Sdk`.
 */
function asMessageOfRun(read: PublishOptions, run: RunRequest | undefined, library: string | undefined): void {
  const { callback } = read.settings;
  if (callback?.features && !fetchesCallResults(library)) {
    callback.features = callback.features.filter((feature) => feature !== 'LazyFetch');
  }
  read.header = withoutMarks(read.header, run?.kind === 'append' ? run.callType : 'step');
  // A client that triggers over REST does not speak the protocol; the library that serves the URL does.
  if (run?.kind === 'start' && run.isRest) {
    read.header[`${prefixOf(read.settings.dialect)}-Workflow-Sdk-Version`] = [PROTOCOL_VERSION];
  }
}

/** The settings that the message sets itself; the other settings come from the trigger (contract W 6.6). */
function stepSettingsOf(scope: Scope, settings: MessageSettings): StepSettings {
  const { maxRetries, ...own } = attemptSettingsOf(settings);
  return OPTIONS.retries.raw(scope) ? { maxRetries, ...own } : own;
}

/** Reads the settings among `options`. */
function readSettings(scope: Scope, settings: DeliverySettings, options: readonly ConfigOption[]): void {
  for (const { setting, read } of options) {
    const value = setting && read(scope);
    if (value !== undefined) Object.assign(settings, { [setting as string]: value });
  }
}

type Times = Pick<PublishOptions, 'delayMs' | 'notBeforeMs'>;

function readTimes(scope: Scope, kind: OptionsContext): Times {
  refuseFor(kind, OPTIONS.delay, scope);
  const delayMs = OPTIONS.delay.read(scope);
  refuseFor(kind, OPTIONS.notBefore, scope);
  // An expression is rejected: if it were ignored, the message would be delivered once instead of repeatedly.
  refuseFor(kind, OPTIONS.cron, scope);
  const notBeforeMs = OPTIONS.notBefore.read(scope);
  // `notBefore` takes precedence over the delay, so the quota of the delay is not checked.
  if (notBeforeMs !== undefined) return { notBeforeMs };
  return delayMs === undefined ? {} : { delayMs };
}

/** An explicit id takes precedence over the content (contract M 11.3), but both are checked. */
function deduplicationOf(scope: Scope): Deduplication | undefined {
  const id = OPTIONS.deduplicationId.read(scope);
  const byContent = OPTIONS.contentBasedDeduplication.read(scope);
  if (id !== undefined) return { by: 'id', id };
  return byContent ? { by: 'content' } : undefined;
}

function readSchedule(scope: Scope, options: PublishOptions, nowMs: number): void {
  const { cron, ...rest } = SCHEDULE_OPTIONS;
  options.cron = checkCron(cron.read(scope), nowMs);
  for (const [member, { read }] of Object.entries<ConfigOption>(rest)) {
    const value = read(scope);
    if (value !== undefined) Object.assign(options, { [member]: value });
  }
}

/** The limit of one message's headers, the same as for a separate request. */
export interface HeaderLimit {
  /** Names and values together. */
  bytesMax: number;
  linesMax: number;
}

const HEADER_LIMIT_OF_MESSAGE: HeaderLimit = { bytesMax: 64 * 1024, linesMax: 1_000 };

/**
 * The `headers` member of a batch item as a flat list, like `rawHeaders` of a request. The member is an object of strings
 * or arrays of strings; absent or null means no headers (contract M 22.3). Throws `invalid_body` (400) for any other
 * shape, and `headers_too_large` (431).
 */
export function itemRawHeaders(headers: unknown, limit = HEADER_LIMIT_OF_MESSAGE): string[] {
  const raw: string[] = [];
  if (headers === undefined || headers === null) return raw;
  if (typeof headers !== 'object' || Array.isArray(headers)) throw invalidBody('headers: must be an object');
  let bytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    for (const line of Array.isArray(value) ? value : [value]) {
      if (typeof line !== 'string')
        throw invalidBody(`headers: ${name.slice(0, 64)} must be a string or an array of strings`);
      bytes += name.length + line.length;
      if (bytes > limit.bytesMax || raw.length >= 2 * limit.linesMax) throw headersTooLarge(limit);
      raw.push(name, line);
    }
  }
  return raw;
}

/** The 431 for too many or too long headers. `where` completes the sentence. */
export function headersTooLarge({ bytesMax, linesMax }: HeaderLimit, where = ''): ApiError {
  const limit = `at most ${bytesMax} bytes in ${linesMax} lines${where}`;
  return new ApiError('headers_too_large', `request headers too large: ${limit}`);
}
