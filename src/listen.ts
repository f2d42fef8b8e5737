/** Where does a server take requests? */
import { createServer } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { CannotStart } from './cannot-start.ts';

export interface ListenAt {
  host: string;
  /** 0: any that is free. */
  port: number;
  /** Whether other threads listen there too: the kernel spreads new connections over them. */
  reusePort: boolean;
}

export interface Bound {
  /** `http://<address>:<port>`, as bound. */
  url: string;
  port: number;
}

/** Throws `CannotStart` for what the operator can mend. */
export async function listen(app: FastifyInstance, at: ListenAt): Promise<Bound> {
  try {
    // Fastify hands on to Node what it does not know itself.
    await app.listen(at.reusePort ? at : { host: at.host, port: at.port });
  } catch (error) {
    throw cannotListen(error, at);
  }
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port');
  const { family, address: host, port } = address;
  return { url: `http://${family === 'IPv6' ? `[${host}]` : host}:${port}`, port };
}

/**
 * Throws `CannotStart` when another program listens there. Who listens with `reusePort` would not notice one of the same
 * user that does so too, and would get half of its requests.
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
