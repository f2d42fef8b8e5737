/** Applies the settings that the trigger of a run fixes for all later messages of the run (contract W 7). */

import { newHeaderMap } from '../protocol/headers.ts';
import { hasConfigPrefix } from '../protocol/options/config-names.ts';
import { ATTEMPT_SETTINGS, attemptSettingsOf } from '../protocol/options/config-options.ts';
import type {
  CallbackSettings,
  DeliverySettings,
  HeaderMap,
  MessageSettings,
  RunStart,
} from '../protocol/options/settings.ts';
import { mergeRedactions } from '../protocol/redaction.ts';
import { keepsTriggerConfiguration } from '../protocol/workflow/generations.ts';
import type { RunConfig } from './model.ts';

/** Reads the configuration from the message that starts the run; `url` is the URL of the workflow. */
export function runConfigOf({ header, settings }: ConfigurableMessage, start: RunStart, url: string): RunConfig {
  const isKept = start.isRest || keepsTriggerConfiguration(start.features);
  const { labels, redact, trace } = settings;
  const config: RunConfig = {
    dialect: settings.dialect,
    features: start.features,
    isKept,
    isRest: start.isRest,
    isUnknownSdk: start.isUnknownSdk,
    header: userHeaders(header),
    ...attemptSettingsOf(settings),
  };
  if (labels) config.labels = labels;
  if (redact) config.redact = redact;
  if (trace) config.trace = trace;
  const failureCallback = settings.failureCallback ?? (start.isRest ? defaultFailureCallback(url) : undefined);
  if (failureCallback) config.failureCallback = failureCallback;
  return config;
}

/**
 * A client that triggers over REST cannot know the URL of the failure function, so the URL of the workflow itself is
 * called. A library that starts a run without a failure URL wants no failure callback (contract W 13.1).
 */
function defaultFailureCallback(url: string): CallbackSettings {
  return { url, method: 'POST', header: newHeaderMap() };
}

/** Drops the headers with a service prefix, because such a header configures only the message that has the header. */
function userHeaders(header: HeaderMap): HeaderMap {
  const map = newHeaderMap();
  for (const [name, values] of Object.entries(header)) {
    if (name !== 'Content-Type' && !hasConfigPrefix(name)) map[name] = values;
  }
  return map;
}

/** The parts of a later message that the trigger's configuration replaces. */
export interface ConfigurableMessage {
  header: HeaderMap;
  settings: MessageSettings;
}

/**
 * Configures a later message of the run. If the run keeps its configuration, the trigger's headers, labels, retries and
 * flow control replace those of the message, except settings for a single step (contract W 6.6). Redaction applies to the
 * whole run (contract W 16.3), and the whole run has one trace. This function is not used for calls, which go to other
 * endpoints.
 */
export function applyRunConfig(message: ConfigurableMessage, config: RunConfig): ConfigurableMessage {
  const { header, settings } = message;
  const redacted = withRunRedaction(config.trace ? { ...settings, trace: config.trace } : settings, config);
  if (!config.isKept) return { header, settings: redacted };
  const { failureCallback: _failure, ...own } = withRunSettings(redacted, config);
  return { header: withHeaders(header, config.header), settings: { ...own, ...own.run?.stepSettings } };
}

/** Configures the callback that brings the result of a call. */
export function applyRunConfigToCallback(callback: CallbackSettings, config: RunConfig): CallbackSettings {
  if (!config.isKept) return callback;
  return { ...withRunSettings(callback, config), header: withHeaders(callback.header, config.header) };
}

/** Configures a call. The call gets only the run's redaction and, unless it forwards another trace, the run's trace. */
export function applyRunConfigToCall(call: ConfigurableMessage, config: RunConfig): MessageSettings {
  const settings = withRunRedaction(call.settings, config);
  return config.trace && !call.header['Traceparent'] ? { ...settings, trace: config.trace } : settings;
}

/** Adds the run's redaction to the redaction of the message. */
function withRunRedaction(settings: MessageSettings, { redact }: RunConfig): MessageSettings {
  return redact ? { ...settings, redact: mergeRedactions(settings.redact, redact) } : settings;
}

/** Replaces the attempt settings and labels of `settings` with the attempt settings and labels of the run. */
function withRunSettings<S extends DeliverySettings>(settings: S, { labels, ...config }: RunConfig): S {
  const fixed: DeliverySettings = { ...settings };
  for (const member of [...ATTEMPT_SETTINGS, 'labels'] as const) delete fixed[member];
  return Object.assign(fixed, attemptSettingsOf(config), labels && { labels }) as S;
}

export function withHeaders(own: HeaderMap, added: HeaderMap): HeaderMap {
  return Object.assign(newHeaderMap(), own, added);
}
