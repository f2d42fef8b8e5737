/**
 * The differences on the wire between the generations of the client library (contract W 6, 22). A library sends its
 * features with each message, and only this file derives behaviour from features. No code checks a version, except where
 * some versions do not support a feature that they announce (`fetchesCallResults`).
 *
 * | generation | features that it sends | behaviour |
 * |---|---|---|
 * | 1.x | all of `CURRENT_FEATURES` | sends a step without its trigger's configuration, and expects all of it back |
 * | 0.2.17 and later, Python | no `WF_TriggerOnConfig` | repeats that configuration, possibly changed, with each message |
 * | 0.1 to 0.2.16 | `LazyFetch`, `InitialBody` | does not mark its responses, so nothing can be concluded from them |
 * | the first libraries, and `@upstash/qstash` | none | needs full bodies, and the journal in a failure callback |
 */
import type { WorkflowFeature } from '../options/settings.ts';

const KNOWN: ReadonlySet<string> = new Set<WorkflowFeature>([
  'LazyFetch',
  'InitialBody',
  'WF_NoDelete',
  'WF_DetectTrigger',
  'WF_TriggerOnConfig',
  'WF_StepConfig',
]);

/** Features of the newest library, which are assumed for a URL that is triggered over REST (contract W 5.3). */
export const CURRENT_FEATURES: readonly WorkflowFeature[] = [
  'LazyFetch',
  'InitialBody',
  'WF_DetectTrigger',
  'WF_TriggerOnConfig',
];

/** The version of the protocol that all generations speak: `Upstash-Workflow-Sdk-Version`. */
export const PROTOCOL_VERSION = '1';

/** Retries of a workflow message that sets no number. Libraries omit the number if it is this default (contract W 11). */
export const RETRIES_DEFAULT = 3;

/** Reads `Upstash-Feature-Set`, each feature once; unknown features are dropped. */
export function parseFeatures(text: string): WorkflowFeature[] {
  const features = new Set<WorkflowFeature>();
  for (const part of text.split(',')) {
    const name = part.trim();
    if (KNOWN.has(name)) features.add(name as WorkflowFeature);
  }
  return [...features];
}

type Features = readonly WorkflowFeature[];

/**
 * Whether the configuration of a trigger applies to all later messages of its run; otherwise each message repeats it
 * (contract W 7).
 */
export function keepsTriggerConfiguration(features: Features): boolean {
  return features.includes('WF_TriggerOnConfig');
}

/** Whether a message's retries, retry delay and flow control replace those of the trigger for a step (contract W 6.6). */
export function setsStepSettings(features: Features): boolean {
  return features.includes('WF_StepConfig');
}

/** Whether a delivery may omit a large body, which the endpoint then fetches (contract W 8.3). */
export function fetchesLazily(features: Features): boolean {
  return features.includes('LazyFetch');
}

/**
 * Whether `library` (`Upstash-Telemetry-Sdk`) fetches the result of a call that a delivery omits. False for 1.3 and later
 * 1.x, which parse the empty body as JSON, so every attempt fails, and then the run. True for an unnamed library.
 */
export function fetchesCallResults(library: string | undefined): boolean {
  const [, major, minor] = /^@upstash\/workflow@v(\d+)\.(\d+)\./.exec(library ?? '') ?? [];
  return !(Number(major) === 1 && Number(minor) >= 3);
}

/** Whether a failure callback contains the payload of the run instead of the delivered journal (contract W 13.2). */
export function wantsPayloadOnly(features: Features): boolean {
  return features.includes('InitialBody');
}

/** Whether the library marks its responses with a header. */
export function marksResponses(features: Features): boolean {
  return features.includes('WF_DetectTrigger');
}
