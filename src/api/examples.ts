/**
 * An example of each request. The interface document shows it (`example`), the documentation page turns it into a shell
 * command, and a test sends it.
 */

/** Example values by the name of the path parameter. */
const IN_PATHS: Readonly<Record<string, string>> = {
  destination: 'https://example.com/hook',
  dlqId: '1767225600000-1',
  eventId: 'paid-42',
  flowControlKey: 'crm',
  messageId: 'msg_26hZCxZCuWyyTWPmSVBrNCtiJGNsULmt6aW2mvKT5xn6tqVmFo',
  name: 'subscribers',
  queueName: 'invoices',
  scheduleId: 'morning-report',
  tokenId: 'tok_5f1c0a9e4b7d2836',
  userId: 'default',
  workflowRunId: 'wfr_order-42',
};

interface Example {
  query?: Readonly<Record<string, string>>;
  headers?: Readonly<Record<string, string>>;
  /** The body, which is sent as JSON. */
  body?: unknown;
}

const A_BODY = { order: 42 };
const A_MESSAGE = { query: { messageIds: IN_PATHS['messageId'] ?? '' } };
const A_DEAD_LETTER = { query: { dlqIds: IN_PATHS['dlqId'] ?? '' } };
const AN_ENDPOINT = { body: { endpoints: [{ url: 'https://example.com/hook', name: 'shop' }] } };

/** Examples by operation id. An operation without an example needs only its path. Bulk examples name a single item. */
const OF_OPERATIONS: Readonly<Record<string, Example>> = {
  publish: { headers: { 'Upstash-Delay': '10s', 'Upstash-Retries': '5' }, body: A_BODY },
  enqueue: { body: A_BODY },
  publishBatch: {
    body: [
      { destination: 'https://example.com/hook', headers: { 'Upstash-Delay': '10s' }, body: '{"order":42}' },
      { destination: 'https://example.com/other', queue: 'invoices', body: '{"order":43}' },
    ],
  },
  triggerWorkflow: { headers: { 'Upstash-Workflow-RunId': 'wfr_order-42' }, body: A_BODY },
  triggerWorkflows: { body: [{ destination: 'https://example.com/workflow', body: '{"order":42}' }] },
  cancelMessages: A_MESSAGE,
  deleteDlqMessages: A_DEAD_LETTER,
  retryDlqMessages: A_DEAD_LETTER,
  addUrlGroupEndpoints: AN_ENDPOINT,
  removeUrlGroupEndpoints: AN_ENDPOINT,
  updateUrlGroup: { body: { headers: { 'Upstash-Retries': '5' } } },
  createSchedule: {
    headers: { 'Upstash-Cron': 'CRON_TZ=Europe/Berlin 30 7 * * MON-FRI', 'Upstash-Schedule-Id': 'morning-report' },
    body: A_BODY,
  },
  saveQueue: { body: { queueName: 'invoices', parallelism: 2 } },
  pinFlowControlKey: { query: { parallelism: '3' } },
  unpinFlowControlKey: { query: { parallelism: 'true' } },
  cancelWorkflowRuns: { query: { workflowRunIds: IN_PATHS['workflowRunId'] ?? '' } },
  deleteFailedWorkflowRuns: A_DEAD_LETTER,
  resumeWorkflowRuns: A_DEAD_LETTER,
  restartWorkflowRuns: A_DEAD_LETTER,
  waitForEvent: {
    headers: { 'Upstash-Workflow-Init': 'false', 'Upstash-Workflow-RunId': 'wfr_order-42' },
    body: { url: 'https://example.com/workflow', timeout: '7d', step: { stepId: 1 } },
  },
  notifyEvent: { body: A_BODY },
  notifyWorkflowRun: { body: A_BODY },
  callWebhook: { body: A_BODY },
  callWebhookByPut: { body: A_BODY },
  callWebhookByPatch: { body: A_BODY },
  createToken: { body: { scope: 'publish-only', name: 'the shop' } },
  advanceTime: { body: { duration: '7d' } },
  runUntilIdle: { body: { limit: '366d' } },
  verifySignature: { body: { signature: 'eyJhbGciOiJIUzI1NiJ9.e30.x', body: '{"order":42}' } },
};

/** `pathNames`: the names of the path parameters. */
export function exampleOf(operationId: string, pathNames: readonly string[] = []): Example & { path: string[] } {
  return { ...OF_OPERATIONS[operationId], path: pathNames.map((name) => IN_PATHS[name] ?? name) };
}
