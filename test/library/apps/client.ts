/** All functions of the client: triggers, logs, cancels, notifications, the list of waiters, and the DLQ. */
import {
  Client,
  type DLQResumeRestartResponse,
  type StepLog,
  serve,
  type TriggerOptions,
  type WorkflowRunLog,
} from '@upstash/workflow';
import { type App, listenerOf } from './app.ts';

const failing = new Set<string>();

export const app: App = {
  listener: (env) =>
    listenerOf({
      '/waiting': serve<string>(
        async (context) => {
          const { eventData, timeout } = await context.waitForEvent<string>('wait', context.requestPayload);
          return context.run('told', () => ({ eventData, timeout }));
        },
        { env },
      ).handler,
      '/failing': serve<string>(
        async (context) => {
          await context.run('before', () => 'kept');
          return context.run('fails', () => {
            if (failing.has(context.requestPayload)) throw new Error(`${context.requestPayload} fails`);
            return 'mended';
          });
        },
        { env },
      ).handler,
    }),
  async use({ env, url, idle }) {
    const client = new Client({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN, retry: false });
    const options: TriggerOptions = { url: `${url}/waiting`, retries: 0, flowControl: { key: 'k', parallelism: 9 } };
    await client.trigger({ ...options, body: 'paid', workflowRunId: 'first' });
    await client.trigger({ ...options, body: 'paid', workflowRunId: 'second' });
    const third = await client.trigger({ ...options, body: 'other', delay: '1d' });
    // Both wait once the endpoint has told the server so.
    let waiters = await client.getWaiters({ eventId: 'paid' });
    while (waiters.length < 2) waiters = await client.getWaiters({ eventId: 'paid' });
    const notified = await client.notify({ eventId: 'paid', eventData: 'thanks' });
    const { cancelled } = await client.cancel(third.workflowRunId);
    await idle();

    failing.add('a').add('b');
    const failed: TriggerOptions = { url: `${url}/failing`, retries: 0 };
    await client.trigger([
      { ...failed, body: 'a', workflowRunId: 'a' },
      { ...failed, body: 'b', workflowRunId: 'b' },
    ]);
    await idle();
    failing.clear();
    const { messages } = await client.dlq.list();
    const dlqIds = new Map(messages.map(({ workflowRunId, dlqId }) => [workflowRunId, dlqId]));
    const resumed: DLQResumeRestartResponse = await client.dlq.resume({ dlqId: dlqIds.get('wfr_a') ?? '' });
    const { workflowRuns } = await client.dlq.restart([dlqIds.get('wfr_b') ?? '']);
    await idle();
    const left = await client.dlq.list({ filter: { workflowUrl: `${url}/failing` } });

    const all: WorkflowRunLog[] = (await client.logs({ count: 100 })).runs;
    const find = (id: string | undefined) => all.find(({ workflowRunId }) => workflowRunId === id);
    const steps: StepLog[] =
      find('wfr_first')?.steps.flatMap((group) => (group.type === 'next' ? [] : group.steps)) ?? [];
    return {
      notified: notified.length,
      cancelled,
      states: ['wfr_first', 'wfr_second', third.workflowRunId].map((id) => find(id)?.workflowState),
      results: [find('wfr_first'), find(resumed.workflowRunId), find(workflowRuns[0]?.workflowRunId)].map(
        (run) => run?.workflowRunResponse,
      ),
      steps: steps.map(({ stepName, stepType, state }) => `${stepType} ${stepName}: ${state}`),
      failed: messages.map(({ workflowRunId }) => workflowRunId).toSorted(),
      left: left.messages.length,
    };
  },
  sees: {
    notified: 2,
    cancelled: 1,
    states: ['RUN_SUCCESS', 'RUN_SUCCESS', 'RUN_CANCELED'],
    results: ['{"eventData":"thanks","timeout":false}', '"mended"', '"mended"'],
    steps: ['Initial init: STEP_SUCCESS', 'Wait wait: STEP_SUCCESS', 'Run told: STEP_SUCCESS'],
    failed: ['wfr_a', 'wfr_b'],
    left: 0,
  },
};
