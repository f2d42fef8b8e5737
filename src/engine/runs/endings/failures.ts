/**
 * Decides how a dead message of a run ends the run: with which state, and with which failure callback (contract W 12.3,
 * 13).
 */

import { encodeCallbackPayload } from '../../../protocol/callback-payload.ts';
import { dlqIdOf } from '../../../protocol/cursor.ts';
import { newHeaderMap } from '../../../protocol/headers.ts';
import { attemptSettingsOf } from '../../../protocol/options/config-options.ts';
import { prefixOf } from '../../../protocol/options/dialect.ts';
import type { CallbackSettings, HeaderMap, MessageSettings, RunSettings } from '../../../protocol/options/settings.ts';
import { mergeRedactions } from '../../../protocol/redaction.ts';
import { wantsPayloadOnly } from '../../../protocol/workflow/generations.ts';
import type { Store } from '../../../store/store.ts';
import { withHeaders } from '../../../workflow/configuration.ts';
import type { Run } from '../../../workflow/model.ts';
import { reportOf, withContentType } from '../../messages/callbacks.ts';
import type { FailedRun, SettleDecision } from '../../messages/decide.ts';
import { followUpOf } from '../../messages/follow-up.ts';
import type { Claimed, FollowUp, Message } from '../../model.ts';
import { draftEnding } from './endings.ts';

/**
 * Adds the end of the run to the decision. If the run has already ended or continued, returns the decision with
 * `changeIfOver` as its change. Call this function again if the store reports that the run has changed. Throws
 * `StoreUnavailable`.
 */
export async function failRun(
  store: { runs: Pick<Store['runs'], 'findRun' | 'findRecords' | 'readJournal'> },
  claimed: Claimed,
  decision: SettleDecision & { failsRun: FailedRun },
): Promise<SettleDecision> {
  const { message } = claimed;
  const { settlement, failsRun } = decision;
  const runSettings = message.settings.run;
  const run = runSettings && (await store.runs.findRun({ projectId: message.projectId, key: runSettings.key }));
  if (!runSettings || run?.state !== 'RUN_STARTED' || hasContinued(run, failsRun)) {
    return { kind: 'settle', settlement: { ...settlement, change: failsRun.changeIfOver }, follows: [] };
  }
  const { ending, follows } = await draftEnding(store, run, { state: 'RUN_FAILED', atMs: failsRun.atMs });
  const callback = run.config.isKept ? run.config.failureCallback : message.settings.failureCallback;
  const callbacks = callback ? [await failureCallbackOf(store, run, callback, claimed, failsRun)] : [];
  return {
    kind: 'settle',
    settlement: { ...settlement, change: { ...settlement.change, ending } },
    follows: [...follows, ...callbacks],
  };
}

function hasContinued({ entries }: Run, { ifLastAt }: FailedRun): boolean {
  return ifLastAt !== undefined && entries > ifLastAt + 1;
}

async function failureCallbackOf(
  store: { runs: Pick<Store['runs'], 'readJournal'> },
  run: Run,
  callback: CallbackSettings,
  claimed: Claimed,
  { ended, atMs }: FailedRun,
): Promise<FollowUp> {
  const { message } = claimed;
  const features = callback.features ?? run.config.features;
  const showsPayload = wantsPayloadOnly(features);
  const [initial] = showsPayload
    ? await store.runs.readJournal({ projectId: run.projectId, runKey: run.key, toPosition: 0 })
    : [];
  const report = reportOf(claimed, ended);
  const body = encodeCallbackPayload(
    {
      ...report,
      // Without a response, the body is empty: the workflow would mistake an error text for a response of the endpoint.
      body: ended.kind === 'responded' ? report.body : new Uint8Array(0),
      sourceBody: showsPayload ? (initial?.body ?? new Uint8Array(0)) : (claimed.deliveredBody ?? message.body),
      dlqId: dlqIdOf(atMs, message.key),
      workflowRunId: run.id,
      workflowCreatedAt: run.createdAtMs,
    },
    { forWorkflow: true },
  );
  const { url, method } = callback;
  const settings = settingsOf(callback, run, message, { features });
  return followUpOf(message, { url, method, header: headerOf(callback, run), body, settings }, atMs);
}

/**
 * The callback's forwarded headers, the kept headers of the run, and the marks by which libraries recognize a failure
 * callback.
 */
function headerOf(callback: CallbackSettings, { config }: Run): HeaderMap {
  const prefix = prefixOf(config.dialect);
  const marks = newHeaderMap();
  marks[`${prefix}-Workflow-Is-Failure`] = ['true'];
  marks[`${prefix}-Workflow-Failure-Callback`] = ['true'];
  const own = withHeaders(marks, callback.header);
  return withContentType(config.isKept ? withHeaders(own, config.header) : own);
}

/**
 * Settings that the callback does not set are copied from the failed message, which has the settings of the run. If the
 * message has settings for its own step, the run's configuration is used instead.
 */
function settingsOf(
  callback: CallbackSettings,
  { config }: Run,
  { settings: failed }: Message,
  { features }: Pick<RunSettings, 'features'>,
): MessageSettings {
  const { url: _url, method: _method, header: _header, features: _features, ...rest } = callback;
  const { callback: _callback, failureCallback: _failure, ...own } = rest;
  const source = failed.run?.stepSettings ? config : failed;
  const settings: MessageSettings = { ...attemptSettingsOf(source), ...own, dialect: config.dialect };
  const trace = config.trace ?? failed.trace;
  if (trace) settings.trace = trace;
  if (config.labels) settings.labels = config.labels;
  if (config.redact) settings.redact = mergeRedactions(own.redact, config.redact);
  if (failed.run) {
    const { init: _init, isRest: _isRest, stepSettings: _step, ...run } = failed.run;
    settings.run = { ...run, callType: 'failureCall', features };
  }
  return settings;
}
