/** Records the real requests of the client libraries: a server that stores all publishes, and the libraries that send them. */
import http from 'node:http';
import { text } from 'node:stream/consumers';
import * as newest from '@upstash/workflow';
import { onTestFinished } from 'vitest';
import * as oldest from 'workflow-oldest';
import { itemRawHeaders } from '../../../src/protocol/options/options.ts';
import { listen, originOf } from '../../support/listen.ts';

/** One message as the server gets it, alone or as an item of a batch. */
export interface Sent {
  /** Of the request that it came with. */
  path: string;
  destination: string;
  rawHeaders: string[];
  body: string;
}

/** A workflow as its user writes it, in the types of either library. */
export type Program = (context: newest.WorkflowContext) => Promise<unknown>;

export interface Terms {
  retries?: number;
  retryDelay?: string;
  flowControl?: { key: string; parallelism: number };
}

export interface Library {
  name: string;
  trigger(wish: { url: string; body: string; label: string; headers: Record<string, string> } & Terms): Promise<void>;
  /** Has the workflow answer a delivery, with `terms` where the library wants them there. */
  deliver(program: Program, delivery: Request, terms: Terms): Promise<Response>;
}

export interface Recording {
  /** In order of arrival. */
  sent: Sent[];
  libraries: { newest: Library; oldest: Library };
}

/** Ends with the test. */
export async function startRecording(): Promise<Recording> {
  const sent: Sent[] = [];
  const server = http.createServer(async (request, response) => {
    const path = request.url ?? '';
    const body = await text(request);
    const messages = path === '/v2/batch' ? itemsOf(body) : [alone(path, request.rawHeaders, body)];
    sent.push(...messages);
    const answers = messages.map((_, index) => ({ messageId: `msg_${index}` }));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(path === '/v2/batch' ? answers : answers[0]));
  });
  await listen(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = originOf(server);
  return { sent, libraries: { newest: newestAt(baseUrl), oldest: oldestAt(baseUrl) } };
}

function alone(path: string, rawHeaders: string[], body: string): Sent {
  return { path, destination: path.replace(/^\/v2\/\w+\//, ''), rawHeaders, body };
}

function itemsOf(json: string): Sent[] {
  const items: { destination: string; headers: unknown; body?: string }[] = JSON.parse(json);
  return items.map(({ destination, headers, body = '' }) => ({
    path: '/v2/batch',
    destination,
    rawHeaders: itemRawHeaders(headers),
    body,
  }));
}

const TOKEN = 'eyJVc2VySUQiOiJ1IiwiUGFzc3dvcmQiOiJwIn0=';

function newestAt(baseUrl: string): Library {
  return {
    name: 'the newest library',
    async trigger(wish) {
      await new newest.Client({ baseUrl, token: TOKEN, retry: false }).trigger(wish);
    },
    deliver: (program, delivery) =>
      newest.serve(program, { env: { QSTASH_URL: baseUrl, QSTASH_TOKEN: TOKEN } }).handler(delivery),
  };
}

function oldestAt(baseUrl: string): Library {
  return {
    name: 'the library of the generation before',
    async trigger(wish) {
      await new oldest.Client({ baseUrl, token: TOKEN, retry: false }).trigger({ ...wish, useFailureFunction: true });
    },
    deliver(program, delivery, terms) {
      const options = {
        ...terms,
        env: { QSTASH_URL: baseUrl, QSTASH_TOKEN: TOKEN },
        failureUrl: 'https://fail.example/',
      };
      // Its context lacks a few members of the newest one, which no program here asks for.
      const route = program as unknown as oldest.RouteFunction<unknown>;
      return oldest.serve(route, options as never).handler(delivery);
    },
  };
}
