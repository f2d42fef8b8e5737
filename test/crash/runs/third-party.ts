/** Endpoints that workflows call, in this process: they are never killed. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listen, originOf } from '../../support/listen.ts';
import type { Diary } from './diary.ts';

export interface ThirdParty {
  url: string;
  close(): Promise<void>;
}

const FAILURES_OF_FLAKY = 2;

/** Workflows call `/ok`, `/flaky` and `/broken`. `/told` receives failure callbacks, and records them in the diary. */
export async function openThirdParty(diary: Diary): Promise<ThirdParty> {
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let heard: string;
    try {
      heard = await text(request);
    } catch {
      return; // the sender was killed while it wrote
    }
    const name = request.url?.slice(1) ?? '';
    if (name === 'told') diary.write({ kind: 'told of failure', runId: (JSON.parse(heard) as Failure).workflowRunId });
    const status = statusOf(name, Number(request.headers['upstash-retried']));
    response.writeHead(status, { 'content-type': 'text/plain' }).end(`${name} hears "${heard}"`);
  }

  const server = createServer((request, response) => void answer(request, response));
  await listen(server);
  return {
    url: originOf(server),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function statusOf(name: string, retried: number): number {
  if (name === 'broken') return 500;
  return name === 'flaky' && retried < FAILURES_OF_FLAKY ? 500 : 200;
}

/** The members of a failure callback (contract W 13.2) that are used here. */
interface Failure {
  workflowRunId: string;
}
