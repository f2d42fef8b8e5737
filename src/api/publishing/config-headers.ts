/**
 * The config headers that each kind of request may have (contract M 4.2). The OpenAPI document lists them; other config
 * headers are reported as ignored. Their names, meanings and schemas are in `protocol/options/config-options.ts`.
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
   * Accepted, but not a parameter in the OpenAPI document: a header with a variable name, or one in which libraries
   * describe themselves.
   */
  isUnlisted?: true;
}

function unlisted(name: string, meaning: string, example: string): ConfigHeader {
  return { name, meaning, schema: Type.String({ examples: [example] }), isUnlisted: true };
}

/** Clients describe themselves with these headers in every request. */
export const OF_EVERY_REQUEST: readonly ConfigHeader[] = ['Sdk', 'Platform', 'Framework', 'Runtime'].map((what) =>
  unlisted(`Upstash-Telemetry-${what}`, 'What the client runs as.', 'example@1.0.0'),
);

/** Options of every delivery, including callbacks. */
const OF_EVERY_DELIVERY: readonly ConfigHeader[] = [
  ...Object.values(ATTEMPT_OPTIONS),
  ...Object.values(DELIVERY_OPTIONS),
  unlisted('Upstash-Forward-Name', 'Delivered as the header Name.', 'value'),
];

/**
 * Workflow libraries send these headers with each message and its callbacks. The server knows the values already, or does
 * not use them.
 */
const OF_THE_LIBRARIES: readonly ConfigHeader[] = [
  unlisted('Upstash-Workflow-Url', 'Where the run is served: the destination.', 'https://example.com/workflow'),
  unlisted('Upstash-Workflow-Sdk-Version', 'Version of the protocol.', '1'),
];

/**
 * Workflow libraries mark a callback as a message of the run. The server creates the callback itself and knows its run.
 */
const OF_CALLBACKS_OF_RUNS: readonly ConfigHeader[] = [
  ...OF_THE_LIBRARIES,
  unlisted('Upstash-Workflow-RunId', 'Id of the run.', 'wfr_order-42'),
  unlisted('Upstash-Workflow-CreatedAt', 'When the run began.', '1767225600000'),
  unlisted('Upstash-Workflow-Init', 'Whether it begins a run.', 'false'),
  unlisted('Upstash-Workflow-CallType', 'What it is to the run.', 'fromCallback'),
  unlisted('Upstash-Feature-Set', 'What the library can do that receives it.', 'LazyFetch,InitialBody'),
];

/** The header with the URL of a callback, and the options of the callback message (contract M 9.4). */
function ofCallback(url: ConfigHeader): ConfigHeader[] {
  const kind = url.name.slice('Upstash-'.length);
  const options = [...OF_EVERY_DELIVERY, ...OF_CALLBACKS_OF_RUNS].map((option) => ({
    ...option,
    ...(url.override && { override: url.override }),
    name: option.name.replace('Upstash-', `Upstash-${kind}-`),
    meaning: `Of the ${kind.toLowerCase().replace('-', ' ')}. ${option.meaning}`,
  }));
  return [url, ...options];
}

/** Options of every message, also if it is retried or published by a schedule. */
const OF_EVERY_MESSAGE: readonly ConfigHeader[] = [
  ...OF_EVERY_DELIVERY,
  OPTIONS.delay,
  ...ofCallback(OPTIONS.callback),
  ...ofCallback(OPTIONS['failure-callback']),
];

const OF_A_SCHEDULE: readonly ConfigHeader[] = Object.values(SCHEDULE_OPTIONS);
const OF_A_TRIGGER: readonly ConfigHeader[] = [...Object.values(TRIGGER_OPTIONS), ...OF_THE_LIBRARIES];
const OF_A_RUN: readonly ConfigHeader[] = [...Object.values(RUN_OPTIONS), ...OF_A_TRIGGER];

/** Read by a wait, whose result is a message. */
export const WAIT_HEADERS: readonly ConfigHeader[] = [...OF_A_RUN, ...OF_EVERY_MESSAGE];

/** Read by the end of a run. */
export const RUN_END_HEADERS: readonly ConfigHeader[] = [OPTIONS.workflowCreatedAt];

/** Read by the creation of a schedule. */
export const SCHEDULE_HEADERS: readonly ConfigHeader[] = [...OF_A_SCHEDULE, ...OF_EVERY_MESSAGE, OPTIONS.headerForward];

/** Read by a publish. */
export const PUBLISH_HEADERS: readonly ConfigHeader[] = [
  ...OF_EVERY_MESSAGE,
  ...Object.values(PUBLISH_OPTIONS),
  ...OF_A_SCHEDULE,
  ...OF_A_RUN,
];

/** Read by an enqueue. The queue determines when its messages are delivered, so they have no delay (contract M 12.7). */
export const ENQUEUE_HEADERS: readonly ConfigHeader[] = PUBLISH_HEADERS.filter(
  (known) => !known.notFor?.includes('enqueue') && ![...OF_A_SCHEDULE, ...OF_A_RUN].includes(known),
);

/** Read by the trigger of a workflow run. The server adds the other headers of the workflow protocol. */
export const TRIGGER_HEADERS: readonly ConfigHeader[] = [
  OPTIONS.workflowRunId,
  ...OF_EVERY_MESSAGE.filter(({ name }) => !name.startsWith('Upstash-Callback')),
  OPTIONS.notBefore,
  OPTIONS.headerForward,
  ...OF_A_TRIGGER,
];

/** Read by a DLQ retry: each replaces the option of the dead message (contract M 17.4). */
export const RETRY_HEADERS: readonly ConfigHeader[] = [...OF_EVERY_MESSAGE, OPTIONS.notBefore];

/**
 * Read by the resume and the restart of a failed run: each replaces the value that the run was triggered with
 * (contract W 21.2).
 */
export const RUN_OVERRIDE_HEADERS: readonly ConfigHeader[] = RETRY_HEADERS.filter(({ override }) => override === 'run');

/** Read by the resume and the restart of a single run, whose new id may be given. */
export const SINGLE_RUN_OVERRIDE_HEADERS: readonly ConfigHeader[] = [
  ...RUN_OVERRIDE_HEADERS,
  {
    name: OPTIONS.workflowRunId.name,
    meaning: 'Id of the new run; a random one without it.',
    schema: Type.String({ examples: ['wfr_again'] }),
  },
];
