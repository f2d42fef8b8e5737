/** Listens on the configured address, and explains errors that the operator can fix. */
import { lookup } from 'node:dns/promises';
import { createServer } from 'node:net';
import type { Listener } from '../api/edge/listener.ts';
import { CannotStart } from '../system/cannot-start.ts';

export interface ListenAddress {
  host: string;
  /** 0: any free port. */
  port: number;
  /** Whether other threads listen on the same port. The kernel then distributes new connections among them. */
  isShared: boolean;
}

export interface BoundAddress {
  /** The bound address, as `http://<address>:<port>`. */
  url: string;
  port: number;
}

/** Throws `CannotStart` for problems that the operator can fix. */
export async function listen(listener: Listener, requested: ListenAddress): Promise<BoundAddress> {
  const { host, port: requestedPort, isShared } = requested;
  try {
    // Several sockets on one port accept connections faster. If the system does not support shared ports, a single socket
    // is used unless `isShared` is set.
    if (requestedPort !== 0 && !isShared) await checkIsFree(requested);
    const [first = host, ...others] = await addressesOf(host);
    const reusePort = isShared || process.platform === 'linux';
    const { family, address, port } = await listener.listen({ host: first, port: requestedPort, reusePort }, others);
    return { url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`, port };
  } catch (error) {
    throw cannotListen(error, requested);
  }
}

/** Returns the addresses of both families for `localhost`, because clients try both. */
async function addressesOf(host: string): Promise<string[]> {
  if (host !== 'localhost') return [host];
  const found = await lookup(host, { all: true });
  return found.map(({ address }) => address);
}

/**
 * Throws `CannotStart` when another program listens on the port. Without this check, a program of the same user that
 * listens with SO_REUSEPORT, as this server does, would go unnoticed and receive half of the requests.
 */
export async function checkIsFree({ host, port }: Pick<ListenAddress, 'host' | 'port'>): Promise<void> {
  const probe = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      probe.once('error', reject);
      probe.listen({ host, port, exclusive: true }, resolve);
    });
  } catch (error) {
    throw cannotListen(error, { host, port });
  }
  await new Promise((resolve) => probe.close(resolve));
}

function cannotListen(error: unknown, { host, port }: Pick<ListenAddress, 'host' | 'port'>): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') {
    return new CannotStart(`port ${port} on ${host} is in use: choose another with --port or PORT`, { cause: error });
  }
  if (code === 'ENOTSUP') {
    return new CannotStart('this system cannot share a port between threads: run with --workers 1', { cause: error });
  }
  if (code !== undefined) return new CannotStart(`cannot listen on ${host}, port ${port} (${code})`, { cause: error });
  return error;
}
