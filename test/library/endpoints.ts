/** Endpoints of this process, on free ports; all of them gone after a test. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export class Endpoints {
  readonly #servers: Server[] = [];

  /** Its URL. */
  async listen(handle: RequestListener): Promise<string> {
    const server = createServer(handle);
    this.#servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  close(): void {
    for (const server of this.#servers) server.close().closeAllConnections();
  }
}
