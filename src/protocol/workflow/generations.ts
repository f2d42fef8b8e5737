/**
 * In what do the generations of the client library differ on the wire (contract W 6, 22)? A library says with each message
 * what it can do, and this is the only place that knows what follows from that: nothing asks for a version, but where one
 * cannot do what it says (`fetchesCallResults`).
 *
 * | generation | says of itself | so it |
 * |---|---|---|
 * | 1.x | all of `FEATURES_OF_TODAY` | sends with a step nothing of what its trigger fixed, and expects all of it back |
 * | 0.2.17 and later, Python | no `WF_TriggerOnConfig` | repeats all of it with each message, which may differ from the trigger's |
 * | 0.1 to 0.2.16 | `LazyFetch`, `InitialBody` | does not mark its answers, so nothing can be concluded from them |
 * | the first ones, and the one in `@upstash/qstash` | nothing | takes bodies in full only, and wants the journal in a failure callback |
 */
import type { WorkflowFeature } from '../settings.ts';

const KNOWN: ReadonlySet<string> = new Set<WorkflowFeature>([
  'LazyFetch',
  'InitialBody',
  'WF_NoDelete',
  'WF_DetectTrigger',
  'WF_TriggerOnConfig',
  'WF_StepConfig',
]);

/** What the newest library can do; assumed of the one behind a URL that is triggered over REST (contract W 5.3). */
export const FEATURES_OF_TODAY: readonly WorkflowFeature[] = [
  'LazyFetch',
  'InitialBody',
  'WF_DetectTrigger',
  'WF_TriggerOnConfig',
];

/** The version of the protocol that all generations speak: `Upstash-Workflow-Sdk-Version`. */
export const PROTOCOL_VERSION = '1';

/** Retries of a workflow message that does not say: libraries leave the number out where it is this one (contract W 11). */
export const RETRIES_DEFAULT = 3;

/** Reads `Upstash-Feature-Set`, each feature once; what is not known here is left out. */
export function parseFeatures(text: string): WorkflowFeature[] {
  const features = new Set<WorkflowFeature>();
  for (const part of text.split(',')) {
    const name = part.trim();
    if (KNOWN.has(name)) features.add(name as WorkflowFeature);
  }
  return [...features];
}

type Features = readonly WorkflowFeature[];

/** Whether what a trigger fixed holds for all later messages of its run; otherwise each says it itself (contract W 7). */
export function keepsTriggerConfiguration(features: Features): boolean {
  return features.includes('WF_TriggerOnConfig');
}

/** Whether a large body may be left out and fetched by the endpoint (contract W 8.3). */
export function fetchesLazily(features: Features): boolean {
  return features.includes('LazyFetch');
}

/**
 * Whether an endpoint of the library called `library` (`Upstash-Telemetry-Sdk`) fetches the result of a call that was left
 * out. The one in the releases of 1.3 fails instead, each time and so the run: it reads the empty body as JSON. What
 * does not say its name is taken at its word.
 */
export function fetchesCallResults(library: string | undefined): boolean {
  const [, major, minor] = /^@upstash\/workflow@v(\d+)\.(\d+)\./.exec(library ?? '') ?? [];
  return !(Number(major) === 1 && Number(minor) >= 3);
}

/** Whether a failure callback repeats the payload of the run, and not the journal that was delivered (contract W 13.2). */
export function wantsPayloadOnly(features: Features): boolean {
  return features.includes('InitialBody');
}

/** Whether each answer of the library says that it is one. */
export function marksAnswers(features: Features): boolean {
  return features.includes('WF_DetectTrigger');
}
