/** Options of a workflow besides its steps: middlewares, a failure function, a schema, its own errors, its own client. */
import { Client as QstashClient, Receiver } from '@upstash/qstash';
import {
  Client,
  loggingMiddleware,
  serve,
  type WorkflowContext,
  WorkflowError,
  WorkflowMiddleware,
  WorkflowNonRetryableError,
  WorkflowRetryAfterError,
} from '@upstash/workflow';
import { z } from 'zod';
import { type App, listenerOf } from './app.ts';

const told: string[] = [];

const telling = new WorkflowMiddleware({
  name: 'telling',
  callbacks: {
    runStarted: ({ context }) => {
      told.push(`${context.workflowRunId} started`);
    },
    afterExecution: async ({ stepName, result }) => {
      told.push(`${stepName}: ${JSON.stringify(result)}`);
    },
    runCompleted: ({ result }) => {
      told.push(`completed: ${JSON.stringify(result)}`);
    },
    onError: ({ error }) => {
      told.push(error.message);
    },
  },
});

const Payload = z.object({ amount: z.number() });

async function checked(context: WorkflowContext<z.infer<typeof Payload>>): Promise<number> {
  const amount: number = context.requestPayload.amount;
  return context.run('charge', () => amount + 1);
}

export const app: App = {
  listener: (env) => {
    const qstashClient = new QstashClient({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN });
    const receiver = new Receiver({
      currentSigningKey: env.QSTASH_CURRENT_SIGNING_KEY,
      nextSigningKey: env.QSTASH_NEXT_SIGNING_KEY,
    });
    return listenerOf({
      '/checked': serve(checked, { qstashClient, receiver, schema: Payload, middlewares: [telling] }).handler,
      '/parsed': serve<{ word: string }>(async (context) => context.run('one', () => context.requestPayload.word), {
        env,
        initialPayloadParser: (text) => ({ word: text.toUpperCase() }),
      }).handler,
      '/fails': serve(
        async (context) => {
          await context.run('fails', () => {
            throw new WorkflowNonRetryableError('never again');
          });
        },
        {
          env,
          failureFunction: async ({ context, failStatus, failResponse }) => {
            told.push(`${context.workflowRunId}: ${failStatus} ${failResponse}`);
            return 'noted';
          },
        },
      ).handler,
      '/later': serve(
        async (context) => {
          await context.run('later', () => {
            if (context.retried === 0) throw new WorkflowRetryAfterError('not yet', '90s');
            return context.retried;
          });
          await context.cancel();
        },
        { env, middlewares: [loggingMiddleware].slice(1) },
      ).handler,
    });
  },
  async use({ env, url, idle }) {
    told.length = 0;
    const client = new Client({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN });
    const states: unknown[] = [];
    const bodies: [string, unknown][] = [
      ['checked', { amount: 41 }],
      ['parsed', 'word'],
      ['fails', undefined],
      ['later', undefined],
    ];
    for (const [path, body] of bodies) {
      await client.trigger({ url: `${url}/${path}`, body, workflowRunId: path, retries: 1 });
      await idle();
      const [run] = (await client.logs({ filter: { workflowRunId: `wfr_${path}` } })).runs;
      states.push([run?.workflowState, run?.workflowRunResponse, run?.failureFunction?.responseBody]);
    }
    const error = new WorkflowError('of an app');
    return { states, told, error: [error.name, error.message, error instanceof Error] };
  },
  sees: {
    states: [
      ['RUN_SUCCESS', '42', undefined],
      ['RUN_SUCCESS', '"WORD"', undefined],
      ['RUN_FAILED', undefined, '{"result":"noted"}'],
      ['RUN_CANCELED', undefined, undefined],
    ],
    told: ['wfr_checked started', 'charge: 42', 'completed: 42', 'wfr_fails: 489 never again'],
    error: ['WorkflowError', 'of an app', true],
  },
};
