/** Opens the address that a server listens on. */
import { lookup } from 'node:dns/promises';
import { createServer } from 'node:net';
import type { Listener } from '../api/edge/listener.ts';
import { CannotStart } from '../system/cannot-start.ts';

export interface ListenAt {
  host: string;
  /** 0: any free port. */
  port: number;
  /** Whether other threads listen there too. The kernel then spreads new connections over them. */
  isShared: boolean;
}

export interface Bound {
  /** `http://<address>:<port>`, as bound. */
  url: string;
  port: number;
}

/** Throws `CannotStart` for problems that the operator can repair. */
export async function listen(listener: Listener, at: ListenAt): Promise<Bound> {
  const { host, port: wanted, isShared } = at;
  try {
    // Several sockets on one port accept connections faster. Without `isShared`, one socket is enough where the system
    // has no shared ports.
    if (wanted !== 0 && !isShared) await checkIsFree(at);
    const [first = host, ...others] = await addressesOf(host);
    const reusePort = isShared || process.platform === 'linux';
    const { family, address, port } = await listener.listen({ host: first, port: wanted, reusePort }, others);
    return { url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`, port };
  } catch (error) {
    throw cannotListen(error, at);
  }
}

/** Clients that call `localhost` try both address families, so it means both. */
async function addressesOf(host: string): Promise<string[]> {
  if (host !== 'localhost') return [host];
  const found = await lookup(host, { all: true });
  return found.map(({ address }) => address);
}

/**
 * Throws `CannotStart` when another program listens there. Without this check, another program of the same user that
 * also shares its port would go unnoticed, and would get half of the requests.
 */
export async function checkIsFree({ host, port }: Pick<ListenAt, 'host' | 'port'>): Promise<void> {
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

function cannotListen(error: unknown, { host, port }: Pick<ListenAt, 'host' | 'port'>): unknown {
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
