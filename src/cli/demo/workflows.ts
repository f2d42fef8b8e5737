/** The demo's workflows, as a user would write them: an order with every kind of step, and related workflows. */
import { WorkflowNonRetryableError } from '@upstash/workflow';
import { createWorkflow, serveMany } from '@upstash/workflow/cloudflare';

/** The services that the workflows use. */
export interface Shop {
  /** URL of the endpoint that returns prices. */
  url: string;
  /** The server's time, Unix milliseconds. */
  nowMs(): number;
  /** Passes a courier the URL to call after the parcel was handed over; the courier calls it soon afterwards. */
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

/** Creates a fetch handler for all workflows. The path of each workflow ends in the workflow's name. */
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
    const paid = payment.timeout ? 'not paid' : `paid by ${payment.eventData?.by}`;
    return `${packed.body}, ${paid}, price asked (${price.status}), went with ${courier}`;
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
  // The handler gets no signing keys: the demo's clock may be ahead, and signatures from the future are invalid.
  return (request) => fetch(request, { QSTASH_URL: url, QSTASH_TOKEN: token });
}
