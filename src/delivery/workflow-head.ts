/** Adds the headers that describe a delivery to a workflow library (contract W 9.2, 9.3). */
import { hasConfigPrefix } from '../protocol/options/config-names.ts';
import { prefixOf } from '../protocol/options/dialect.ts';
import { flowControlValueOf } from '../protocol/options/flow-control.ts';
import type { Dialect, MessageSettings, RunSettings } from '../protocol/options/settings.ts';
import { END_STEP_BYTES_MAX } from '../protocol/workflow/checkpoints.ts';
import { encodeWireValue } from '../protocol/workflow/forwarded-headers.ts';

/** Header names, built once per dialect, spelled as in header maps, so that a forwarded header of the same name is found. */
interface WorkflowNames {
  runId: string;
  url: string;
  init: string;
  createdAt: string;
  callType: string;
  unknownSdk: string;
  label: string;
  flowControlKey: string;
  flowControlValue: string;
  retries: string;
  maxRetries: string;
  retryDelay: string;
  stepConfig: string;
  checkpoint: string;
  endStep: string;
}

const NAMES: Readonly<Record<Dialect, WorkflowNames>> = {
  upstash: workflowNames('upstash'),
  waypost: workflowNames('waypost'),
};

const END_STEP_BYTES = String(END_STEP_BYTES_MAX);

/**
 * Adds alternating names and values in the message's dialect; `checkpoint` is a token (contract K 2). A `context.call`
 * gets none of these headers, since the called endpoint must not see the run. If the called endpoint is a workflow, it
 * must treat the request as the start of a new run.
 */
export function addWorkflowHeaders(
  added: string[],
  { settings, retried, checkpoint }: { settings: MessageSettings; retried: number; checkpoint: string | undefined },
): void {
  const { dialect, labels, run } = settings;
  if (run === undefined || run.callType === 'toCallback') return;
  const names = NAMES[dialect];
  added.push(names.runId, run.id);
  added.push(names.url, encodeWireValue(run.url));
  added.push(names.init, run.init === undefined ? 'false' : 'true');
  added.push(names.createdAt, String(run.createdAtMs));
  added.push(names.callType, run.callType);
  if (run.init === 'unknown') added.push(names.unknownSdk, 'true');
  if (labels !== undefined) added.push(names.label, labels.join(','));
  addConfiguration(added, settings, retried, names);
  if (checkpoint !== undefined) added.push(names.checkpoint, checkpoint, names.endStep, END_STEP_BYTES);
}

/** The settings of the delivery. A library compares them with the settings of the step to execute (contract W 6.6). */
function addConfiguration(
  added: string[],
  { flowControl, maxRetries, retryDelayExpression, run }: MessageSettings,
  retried: number,
  names: WorkflowNames,
): void {
  if (flowControl) {
    added.push(names.flowControlKey, flowControl.key, names.flowControlValue, flowControlValueOf(flowControl));
  }
  added.push(names.retries, String(retried), names.maxRetries, String(maxRetries));
  if (retryDelayExpression !== undefined) added.push(names.retryDelay, retryDelayExpression);
  if (run?.stepSettings) added.push(names.stepConfig, 'true');
}

/**
 * Whether the forwarded header `name`, in canonical spelling, must not be sent with a message of the run. A library that
 * sees the protocol version parses the body as a journal. The result of a call is not a journal. Neither is a first message
 * that detects which library serves the URL.
 */
export function isLeftOut({ callType, init }: RunSettings, name: string): boolean {
  if (callType !== 'fromCallback' && init !== 'unknown') return false;
  return hasConfigPrefix(name) && name.endsWith('-Workflow-Sdk-Version');
}

function workflowNames(dialect: Dialect): WorkflowNames {
  const prefix = prefixOf(dialect);
  return {
    runId: `${prefix}-Workflow-Runid`,
    url: `${prefix}-Workflow-Url`,
    init: `${prefix}-Workflow-Init`,
    createdAt: `${prefix}-Workflow-Createdat`,
    callType: `${prefix}-Workflow-Calltype`,
    unknownSdk: `${prefix}-Workflow-Unknown-Sdk`,
    label: `${prefix}-Label`,
    flowControlKey: `${prefix}-Flow-Control-Key`,
    flowControlValue: `${prefix}-Flow-Control-Value`,
    retries: `${prefix}-Retries`,
    maxRetries: `${prefix}-Max-Retries`,
    retryDelay: `${prefix}-Retry-Delay`,
    stepConfig: `${prefix}-Workflow-Step-Config`,
    checkpoint: `${prefix}-Workflow-Checkpoint`,
    endStep: `${prefix}-Workflow-End-Step`,
  };
}
