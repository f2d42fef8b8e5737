/**
 * The config headers that each kind of request may have (contract M 4.2). The OpenAPI document lists them; other config
 * headers are reported as ignored. `protocol/options/config-options.ts` defines their names, meanings and schemas.
 */
import { Type } from '@sinclair/typebox';
import {
  ATTEMPT_OPTIONS,
  type ConfigOption,
  DELIVERY_OPTIONS,
  OPTIONS,
  PUBLISH_OPTIONS,
  RUN_OPTIONS,
  SCHEDULE_OPTIONS,
  TRIGGER_OPTIONS,
} from '../../protocol/options/config-options.ts';

export interface ConfigHeader extends Pick<ConfigOption, 'name' | 'meaning' | 'schema' | 'override' | 'notFor'> {
  /**
   * Accepted, but not a parameter in the OpenAPI document: a header with a variable name, or a header in which libraries
   * describe themselves.
   */
  isUnlisted?: true;
}

function unlisted(name: string, meaning: string, example: string): ConfigHeader {
  return { name, meaning, schema: Type.String({ examples: [example] }), isUnlisted: true };
}

/** Clients describe themselves with these headers in every request. */
export const CLIENT_HEADERS: readonly ConfigHeader[] = ['Sdk', 'Platform', 'Framework', 'Runtime'].map((what) =>
  unlisted(`Upstash-Telemetry-${what}`, 'What the client runs as.', 'example@1.0.0'),
);

/** Options of every delivery, including callbacks. */
const DELIVERY_HEADERS: readonly ConfigHeader[] = [
  ...Object.values(ATTEMPT_OPTIONS),
  ...Object.values(DELIVERY_OPTIONS),
  unlisted('Upstash-Forward-Name', 'Delivered as the header Name.', 'value'),
];

/**
 * Workflow libraries send these headers with each message and its callbacks. The server knows the values already, or does
 * not use them.
 */
const WORKFLOW_LIBRARY_HEADERS: readonly ConfigHeader[] = [
  unlisted('Upstash-Workflow-Url', 'Where the run is served: the destination.', 'https://example.com/workflow'),
  unlisted('Upstash-Workflow-Sdk-Version', 'Version of the protocol.', '1'),
];

/**
 * Workflow libraries mark a callback as a message of the run. The server creates the callback itself and knows its run.
 */
const RUN_CALLBACK_HEADERS: readonly ConfigHeader[] = [
  ...WORKFLOW_LIBRARY_HEADERS,
  unlisted('Upstash-Workflow-RunId', 'Id of the run.', 'wfr_order-42'),
  unlisted('Upstash-Workflow-CreatedAt', 'When the run began.', '1767225600000'),
  unlisted('Upstash-Workflow-Init', 'Whether it begins a run.', 'false'),
  unlisted('Upstash-Workflow-CallType', 'What it is to the run.', 'fromCallback'),
  unlisted('Upstash-Feature-Set', 'What the library can do that receives it.', 'LazyFetch,InitialBody'),
];

/** The header with the URL of a callback, and the options of the callback message (contract M 9.4). */
function callbackHeaders(url: ConfigHeader): ConfigHeader[] {
  const kind = url.name.slice('Upstash-'.length);
  const options = [...DELIVERY_HEADERS, ...RUN_CALLBACK_HEADERS].map((option) => ({
    ...option,
    ...(url.override && { override: url.override }),
    name: option.name.replace('Upstash-', `Upstash-${kind}-`),
    meaning: `Of the ${kind.toLowerCase().replace('-', ' ')}. ${option.meaning}`,
  }));
  return [url, ...options];
}

/** Options of every message, also if it is retried or published by a schedule. */
const MESSAGE_HEADERS: readonly ConfigHeader[] = [
  ...DELIVERY_HEADERS,
  OPTIONS.delay,
  ...callbackHeaders(OPTIONS.callback),
  ...callbackHeaders(OPTIONS['failure-callback']),
];

const SCHEDULE_ONLY_HEADERS: readonly ConfigHeader[] = Object.values(SCHEDULE_OPTIONS);
const TRIGGER_ONLY_HEADERS: readonly ConfigHeader[] = [...Object.values(TRIGGER_OPTIONS), ...WORKFLOW_LIBRARY_HEADERS];
const RUN_HEADERS: readonly ConfigHeader[] = [...Object.values(RUN_OPTIONS), ...TRIGGER_ONLY_HEADERS];

/** Headers of a wait. The result of a wait is a message. */
export const WAIT_HEADERS: readonly ConfigHeader[] = [...RUN_HEADERS, ...MESSAGE_HEADERS];

/** Headers of the request that ends a run. */
export const RUN_END_HEADERS: readonly ConfigHeader[] = [OPTIONS.workflowCreatedAt];

/** Headers of the request that creates a schedule. */
export const SCHEDULE_HEADERS: readonly ConfigHeader[] = [
  ...SCHEDULE_ONLY_HEADERS,
  ...MESSAGE_HEADERS,
  OPTIONS.headerForward,
];

/** Headers of a publish. */
export const PUBLISH_HEADERS: readonly ConfigHeader[] = [
  ...MESSAGE_HEADERS,
  ...Object.values(PUBLISH_OPTIONS),
  ...SCHEDULE_ONLY_HEADERS,
  ...RUN_HEADERS,
];

/** Headers of an enqueue. They include no delay, since the queue determines the delivery times (contract M 12.7). */
export const ENQUEUE_HEADERS: readonly ConfigHeader[] = PUBLISH_HEADERS.filter(
  (known) => !known.notFor?.includes('enqueue') && ![...SCHEDULE_ONLY_HEADERS, ...RUN_HEADERS].includes(known),
);

/** Headers of the request that triggers a workflow run. The server adds the other headers of the workflow protocol. */
export const TRIGGER_HEADERS: readonly ConfigHeader[] = [
  OPTIONS.workflowRunId,
  ...MESSAGE_HEADERS.filter(({ name }) => !name.startsWith('Upstash-Callback')),
  OPTIONS.notBefore,
  OPTIONS.headerForward,
  ...TRIGGER_ONLY_HEADERS,
];

/** Headers of a DLQ retry: each header replaces the option of the dead message (contract M 17.4). */
export const RETRY_HEADERS: readonly ConfigHeader[] = [...MESSAGE_HEADERS, OPTIONS.notBefore];

/**
 * Headers of a request to resume or restart failed runs: each header replaces the value with which the run was triggered
 * (contract W 21.2).
 */
export const RUN_OVERRIDE_HEADERS: readonly ConfigHeader[] = RETRY_HEADERS.filter(({ override }) => override === 'run');

/** Headers of a request to resume or restart a single run, including the id of the new run. */
export const SINGLE_RUN_OVERRIDE_HEADERS: readonly ConfigHeader[] = [
  ...RUN_OVERRIDE_HEADERS,
  {
    name: OPTIONS.workflowRunId.name,
    meaning: 'Id of the new run; a random one without it.',
    schema: Type.String({ examples: ['wfr_again'] }),
  },
];
