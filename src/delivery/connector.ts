/**
 * Opens sockets, only to addresses that the guard allows.
 *
 * Three checks are needed. A literal host never reaches `lookup`, so it is checked first. A name is resolved once, all its
 * addresses are checked, and the socket connects to one of them: a second resolution could differ (DNS rebinding). The
 * address that the socket is connected to is checked again.
 */
import type { LookupFunction, Socket } from 'node:net';
import { buildConnector } from 'undici';
import type { ProjectId } from '../engine/model.ts';
import { type AddressClass, type AddressGuard, literalAddress } from './addresses/address-guard.ts';
import type { LookUp, LookupRequest, Resolver } from './addresses/resolver.ts';

/**
 * The address guard blocked an address. The error names only the class of the address, since the addresses behind names
 * are confidential.
 */
export class BlockedAddress extends Error {
  readonly addressClass: AddressClass;

  constructor(addressClass: AddressClass) {
    super(`refused a ${addressClass} address`);
    this.name = 'BlockedAddress';
    this.addressClass = addressClass;
  }
}

/**
 * Like undici's connector, with the project whose name look-ups are counted. The connector returns the socket at once,
 * so that the socket can be closed while it is connecting.
 */
export type Connector = (
  options: buildConnector.Options & { projectId: ProjectId },
  callback: (error: Error | null, socket: Socket | null) => void,
) => Socket | undefined;

/** `buildConnector` returns the socket, although its published type declares no result. */
type SocketReturningConnector = (
  options: buildConnector.Options,
  callback: (...result: buildConnector.CallbackArgs) => void,
) => Socket;

export function createConnector(guard: AddressGuard, resolver: Resolver, verifyTls: boolean): Connector {
  /** The look-up for the socket that is being opened. `open` calls it synchronously, so each socket can set its own. */
  let lookUp: LookUp;
  const open = buildConnector({
    allowH2: false,
    // No separate limit: the attempt's deadline includes connecting, and closes the socket.
    timeout: 0,
    rejectUnauthorized: verifyTls,
    lookup: guardedLookup(guard, (hostname) => lookUp(hostname)),
    maxCachedSessions: 1_000,
    // Bytes that are buffered if an endpoint sends faster than we read. Most responses are shorter.
    highWaterMark: 16 * 1024,
  } as buildConnector.BuildOptions) as SocketReturningConnector;

  return (options, callback) => {
    const literal = literalAddress(options.hostname);
    const refused = literal === undefined ? undefined : guard.blockedClass(literal, literal);
    if (refused !== undefined) {
      callback(new BlockedAddress(refused), null);
      return undefined;
    }
    let request: LookupRequest | undefined;
    lookUp = async (hostname) => {
      request = resolver.request(hostname, options.projectId);
      const { addresses } = await request.started;
      return addresses;
    };
    const opening = open(options, (error, socket) => {
      if (error !== null) return callback(error, null);
      const { remoteAddress } = socket;
      // Without an address the peer has already disconnected, so there is nothing to check.
      if (remoteAddress === undefined) return callback(connectionLost(socket), null);
      const connected = guard.blockedClass(remoteAddress, options.hostname);
      if (connected === undefined) return callback(null, socket);
      socket.destroy();
      callback(new BlockedAddress(connected), null);
    });
    return opening.once('close', () => request?.cancel());
  };
}

function guardedLookup(guard: AddressGuard, lookUp: LookUp): LookupFunction {
  return (hostname, options, callback) => {
    lookUp(hostname).then(
      (addresses) => {
        const [first] = addresses;
        if (first === undefined) return callback(noSuchHost(hostname), '');
        for (const { address } of addresses) {
          const refused = guard.blockedClass(address, hostname);
          // One forbidden address blocks the name: a name with allowed and forbidden addresses is an attack or a mistake.
          if (refused !== undefined) return callback(new BlockedAddress(refused), '');
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
