/** The demo's workflows, as a user would write them: an order that takes every kind of step, and what belongs to it. */
import { WorkflowNonRetryableError } from '@upstash/workflow';
import { createWorkflow, serveMany } from '@upstash/workflow/cloudflare';

/** What the workflows find around them. */
export interface Shop {
  /** Of the endpoint that knows prices. */
  url: string;
  /** By the server's clock, Unix milliseconds. */
  nowMs(): number;
  /** A courier is told where to say that the parcel was handed over, and says it a little later. */
  callCourier(webhookUrl: string): void;
  /** Whether money can be paid out. */
  bankIsOpen(): boolean;
}

export interface Order {
  number: number;
  item: string;
}

export interface ServerOfWorkflows {
  url: string;
  token: string;
}

/** A fetch handler: each workflow answers at the path that ends in its name. */
export function workflowsOf(shop: Shop, { url, token }: ServerOfWorkflows): (request: Request) => Promise<Response> {
  const parcel = createWorkflow<{ item: string }, string>(async (context) => {
    const { item } = context.requestPayload;
    return await context.run('pack', () => `a parcel with ${item}`);
  });

  const order = createWorkflow<Order, string>(async (context) => {
    const { number, item } = context.requestPayload;
    await context.run('take the order', () => `order ${number}`);
    const [price, payment, packed] = await Promise.all([
      context.call('ask for the price', { url: `${shop.url}/price`, method: 'POST', body: item }),
      context.waitForEvent<{ by: string }>('wait for the payment', `paid-${number}`, { timeout: '1m' }),
      context.invoke('have it packed', { workflow: parcel, body: { item } }),
    ]);
    await context.sleep('give time to reconsider', 1);
    const handover = await context.createWebhook('make an address for the courier');
    await context.run('call the courier', () => shop.callCourier(handover.webhookUrl));
    const { timeout } = await context.waitForWebhook('wait for the courier', handover, '1m');
    await context.sleepUntil('wait for the arrival', new Date(shop.nowMs() + 1_000));
    await context.notify('tell who asked', `arrived-${number}`, { item });
    const courier = timeout ? 'no courier' : 'the courier';
    return `${packed.body}, paid by ${payment.eventData?.by}, price asked (${price.status}), went with ${courier}`;
  });

  const letter = createWorkflow<Order, string>(async (context) => {
    const { number } = context.requestPayload;
    const arrived = await context.waitForEvent('wait for the arrival', `arrived-${number}`, { timeout: '1m' });
    return await context.run('write', () => (arrived.timeout ? 'We are sorry.' : 'It is there.'));
  });

  const refund = createWorkflow<Order, string>(async (context) => {
    const { number } = context.requestPayload;
    await context.run('take it back', () => `order ${number}`);
    return await context.run('pay out', () => {
      if (!shop.bankIsOpen()) throw new WorkflowNonRetryableError('the bank is closed');
      return 'paid out';
    });
  });

  const { fetch } = serveMany({ order, parcel, letter, refund });
  // Without signing keys: the demo's clock is fast, and a signature from the future is none.
  return (request) => fetch(request, { QSTASH_URL: url, QSTASH_TOKEN: token });
}
