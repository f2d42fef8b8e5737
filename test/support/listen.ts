/** Starts servers of a test on free ports of this machine. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type * as net from 'node:net';

/** Returns the origin of `server`, such as `http://127.0.0.1:40123`. */
export async function listen(server: net.Server, host = '127.0.0.1'): Promise<string> {
  server.listen(0, host);
  await once(server, 'listening');
  return originOf(server);
}

export function originOf(server: net.Server): string {
  const { address, port, family } = server.address() as net.AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

export function portOf(server: net.Server): number {
  return (server.address() as net.AddressInfo).port;
}

/** A set of HTTP servers that are closed together. */
export class Endpoints {
  readonly #servers: Server[] = [];

  /** Starts a server and returns its origin. */
  async listen(handle: RequestListener): Promise<string> {
    const server = createServer(handle);
    this.#servers.push(server);
    return listen(server);
  }

  close(): void {
    for (const server of this.#servers.splice(0)) server.close().closeAllConnections();
  }
}
