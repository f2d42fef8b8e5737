/** The user's app in tests of the test kit: an HTTP server on loopback that records its requests. */
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { listen } from '../support/listen.ts';

export interface Call {
  path: string;
  headers: http.IncomingHttpHeaders;
  body: string;
}

type Handler = (call: Call) => number | Promise<number>;

export class TestApp {
  readonly calls: Call[] = [];
  readonly #server: http.Server;
  url = '';

  private constructor(listener: http.RequestListener) {
    this.#server = http.createServer(listener);
  }

  /** Answers each call with the status that `handle` gives. */
  static async open(handle: Handler = () => 200): Promise<TestApp> {
    const app = new TestApp(async (request, response) => {
      const call = { path: request.url ?? '', headers: request.headers, body: await text(request) };
      app.calls.push(call);
      response.writeHead(await handle(call)).end();
    });
    return app.#listen();
  }

  /** A listener of somebody else's, as Express is one; calls are not noted. */
  static serve(listener: http.RequestListener): Promise<TestApp> {
    return new TestApp(listener).#listen();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #listen(): Promise<this> {
    this.url = await listen(this.#server);
    return this;
  }
}
