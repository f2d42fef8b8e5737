/** Every kind of step, with `Request` and `Response` of the Fetch API. */
import { Client, type Duration, type RouteFunction, serve, type WorkflowContext } from '@upstash/workflow';
import { type App, listenerOf } from './app.ts';

interface Order {
  id: string;
  amount: number;
}

const PAUSE: Duration = '2h';

async function pay(context: WorkflowContext<Order>, amount: number): Promise<string> {
  return context.run('pay', async () => `paid ${amount}`);
}

function orderOf(third: string): RouteFunction<Order, unknown> {
  return async (context) => {
    const { id, amount } = context.requestPayload;
    const paid = await pay(context, amount);
    await context.sleep('pause', PAUSE);
    await context.sleepUntil('until', new Date(context.workflowRunCreatedAt + 86_400_000));
    const { status, body } = await context.call<{ got: string }>('ask', {
      url: third,
      method: 'POST',
      body: JSON.stringify({ id }),
      headers: { 'x-third': 'yes' },
      retries: 1,
      timeout: '10s',
    });
    const [left, right, event] = await Promise.all([
      context.run('left', () => 1),
      context.run('right', async () => ({ id, at: undefined })),
      context.waitForEvent<{ ok: boolean }>('wait', `never-${id}`, { timeout: '1d' }),
    ]);
    const sum: number = left + amount;
    return { paid, status, got: body.got, sum, right: right.id, timeout: event.timeout, labels: context.labels };
  };
}

export const app: App = {
  listener: (env) =>
    listenerOf({
      '/order': async (request) => {
        const third = new URL('/third', request.url).href;
        return serve<Order>(orderOf(third), { env, disableTelemetry: true }).handler(request);
      },
      '/third': async (request) => Response.json({ got: `${request.headers.get('x-third')} ${await request.text()}` }),
    }),
  async use({ env, url, idle }) {
    const client = new Client({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN });
    const { workflowRunId } = await client.trigger({
      url: `${url}/order`,
      body: { id: 'o1', amount: 41 } satisfies Order,
      label: ['orders', 'eu'],
      retries: 2,
    });
    await idle();
    const [run] = (await client.logs({ filter: { workflowRunId } })).runs;
    return { state: run?.workflowState, result: JSON.parse(run?.workflowRunResponse ?? 'null') };
  },
  sees: {
    state: 'RUN_SUCCESS',
    result: {
      paid: 'paid 41',
      status: 200,
      got: 'yes {"id":"o1"}',
      sum: 42,
      right: 'o1',
      timeout: true,
      labels: ['orders', 'eu'],
    },
  },
};
