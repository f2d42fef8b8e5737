/**
 * How is a socket opened, and only to an address that the guard allows?
 *
 * Three checks, since none covers all. A literal host never reaches `lookup`, so it is judged before. A name is resolved
 * here once, all its answers are judged, and the socket goes to those very answers: a second resolution could differ
 * (rebinding). The address that the socket is really connected to is judged again.
 */
import type { LookupFunction, Socket } from 'node:net';
import { buildConnector } from 'undici';
import type { ProjectId } from '../engine/model.ts';
import { type AddressClass, type AddressGuard, literalAddress } from './addresses/address-guard.ts';
import type { Asked, LookUp, Resolver } from './addresses/resolver.ts';

/** The address guard refused. Names only the class: the addresses behind names are not shown to anyone. */
export class RefusedAddress extends Error {
  readonly addressClass: AddressClass;

  constructor(addressClass: AddressClass) {
    super(`refused a ${addressClass} address`);
    this.name = 'RefusedAddress';
    this.addressClass = addressClass;
  }
}

export interface ConnectorOptions {
  guard: AddressGuard;
  resolver: Resolver;
  verifyTls: boolean;
}

/**
 * As undici's connector, but for a project, and returns the socket at once, so that it can be closed while it is still
 * connecting.
 */
export type Connector = (
  options: buildConnector.Options & { projectId: ProjectId },
  callback: (error: Error | null, socket: Socket | null) => void,
) => Socket | undefined;

/** `buildConnector` returns the socket; its published type does not say so. */
type SocketReturningConnector = (
  options: buildConnector.Options,
  callback: (...answer: buildConnector.CallbackArgs) => void,
) => Socket;

export function createConnector({ guard, resolver, verifyTls }: ConnectorOptions): Connector {
  /** Asks for the name of the socket that is being opened. `open` asks before it returns, and knows of no project. */
  let ask: LookUp;
  const open = buildConnector({
    allowH2: false,
    // No limit of its own: the attempt's deadline covers connecting too, and closes the socket.
    timeout: 0,
    rejectUnauthorized: verifyTls,
    lookup: guardedLookup(guard, (hostname) => ask(hostname)),
    maxCachedSessions: 1_000,
    // Bytes that wait in a socket of an endpoint that sends faster than we read; answers worth reading are short.
    highWaterMark: 16 * 1024,
  } as buildConnector.BuildOptions) as SocketReturningConnector;

  return (options, callback) => {
    const literal = literalAddress(options.hostname);
    const refused = literal === undefined ? undefined : guard.refusal(literal, literal);
    if (refused !== undefined) {
      callback(new RefusedAddress(refused), null);
      return undefined;
    }
    let asked: Asked | undefined;
    ask = async (hostname) => {
      asked = resolver.ask(hostname, options.projectId);
      const { answer } = await asked.begun;
      return answer;
    };
    const opening = open(options, (error, socket) => {
      if (error !== null) return callback(error, null);
      const { remoteAddress } = socket;
      // Without an address the peer has hung up already, so there is nothing to judge.
      if (remoteAddress === undefined) return callback(connectionLost(socket), null);
      const connected = guard.refusal(remoteAddress, options.hostname);
      if (connected === undefined) return callback(null, socket);
      socket.destroy();
      callback(new RefusedAddress(connected), null);
    });
    return opening.once('close', () => asked?.leave());
  };
}

function guardedLookup(guard: AddressGuard, lookUp: LookUp): LookupFunction {
  return (hostname, options, callback) => {
    lookUp(hostname).then(
      (addresses) => {
        const [first] = addresses;
        if (first === undefined) return callback(noSuchHost(hostname), '');
        for (const { address } of addresses) {
          const refused = guard.refusal(address, hostname);
          // One bad answer refuses all: a name that points both ways is an attack or a mistake.
          if (refused !== undefined) return callback(new RefusedAddress(refused), '');
        }
        if (options.all) callback(null, addresses);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, ''),
    );
  };
}

function connectionLost(socket: Socket): NodeJS.ErrnoException {
  socket.destroy();
  return Object.assign(new Error('connection lost'), { code: 'ECONNRESET' });
}

function noSuchHost(hostname: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`no address for ${hostname}`), { code: 'ENOTFOUND', syscall: 'getaddrinfo' });
}
