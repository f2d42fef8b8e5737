/** The headers of a step that an endpoint without a library publishes. */

const FEATURES = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig';

/** The headers that the official library sends with a step (contract W 4.3). */
export function stepHeaders(runId: string, url: string): Record<string, string> {
  return {
    'upstash-workflow-init': 'false',
    'upstash-workflow-runid': runId,
    'upstash-workflow-url': url,
    'upstash-workflow-sdk-version': '1',
    'upstash-forward-upstash-workflow-sdk-version': '1',
    'upstash-feature-set': FEATURES,
    'content-type': 'application/json',
    'upstash-method': 'POST',
  };
}
