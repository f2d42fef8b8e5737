/** The HTTP server of the demo's workflows. An app would use Express, Hono or Next.js instead. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type ServerOfWorkflows, type Shop, workflowsOf } from './workflows.ts';

export interface WorkflowApp {
  url: string;
  /** Lets refunds succeed from now on: while the bank is closed, as at first, every refund fails. */
  openBank(): void;
  closeBank(): void;
  close(): Promise<void>;
}

/** The delay is long enough for the run to wait visibly. */
const COURIER_DELAY_MS = 300;

/** Listens on a free port of 127.0.0.1. `shop` gives the URL for prices, and the time. */
export async function startWorkflowApp(
  shop: Pick<Shop, 'url' | 'nowMs'>,
  server: ServerOfWorkflows,
): Promise<WorkflowApp> {
  let open = false;
  const handle = workflowsOf({ ...shop, callCourier, bankIsOpen: () => open }, server);
  const app = createServer((request, response) => {
    handleRequest(handle, request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((resolve, reject) => {
    app.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(app.address() as AddressInfo).port}`,
    openBank: () => {
      open = true;
    },
    closeBank: () => {
      open = false;
    },
    close: () =>
      new Promise((resolve) => {
        app.close(() => resolve());
        app.closeAllConnections();
      }),
  };
}

async function handleRequest(
  handle: (request: Request) => Promise<Response>,
  from: IncomingMessage,
  to: ServerResponse,
): Promise<void> {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(from.headersDistinct)) {
    for (const value of values) headers.append(name, value);
  }
  const request = new Request(`http://${from.headers.host}${from.url}`, {
    method: 'POST',
    headers,
    body: await text(from),
  });
  const response = await handle(request);
  to.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text());
}

function callCourier(webhookUrl: string): void {
  setTimeout(() => {
    // If the call fails, the timeline shows that the run still waits.
    fetch(webhookUrl, { method: 'POST', body: 'handed over' }).catch(() => undefined);
  }, COURIER_DELAY_MS);
}
