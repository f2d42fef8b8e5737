/** Shared by the delivery tests: real clocks, messages to send, servers that end with the test. */
import { randomBytes } from 'node:crypto';
import http from 'node:http';
import net from 'node:net';
import { onTestFinished } from 'vitest';
import { createDelivery, type DeliveryOptions } from '../../src/delivery/delivery.ts';
import type { Claimed, Message, Outcome } from '../../src/engine/model.ts';
import type { Machine } from '../../src/engine/ports.ts';
import type { MessageSettings } from '../../src/protocol/options/settings.ts';
import { listen } from '../support/listen.ts';

export const SIGNING_KEY = 'sig_7kYjw48mhY7kAjqNGcy6cr29RJ6r';

/** Self-signed for `localhost`, valid for a century; protects nothing. */
export const SELF_SIGNED = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg4L1hThNXzlCTpIXK
wwRCpjARU9ueFZSnkJWWNL/RQTqhRANCAAQw+aM8Z5XTt7m9dhT6XJIoMaVm6HSK
O5snDvbD+n+UNQGyQgdGkQJ+xQAi0CTZ3/Tt0ScPDDBc3feQfJa1SoTA
-----END PRIVATE KEY-----`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBlDCCATugAwIBAgIUZs8uxTMy/9TpppHWShlL5jnJNeUwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTA0MDMxM1oYDzIxMjYxMDI4
MDQwMzEzWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQw+aM8Z5XTt7m9dhT6XJIoMaVm6HSKO5snDvbD+n+UNQGyQgdGkQJ+
xQAi0CTZ3/Tt0ScPDDBc3feQfJa1SoTAo2kwZzAdBgNVHQ4EFgQU6rp2TKtVgtmK
Oz2kLmjbIFsLB9IwHwYDVR0jBBgwFoAU6rp2TKtVgtmKOz2kLmjbIFsLB9IwDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
RwAwRAIgJp1W4pCCkeyjGWk2awCSGvRFdn+sin4UaB2BMHjXhY4CIB17fbgaUA9Z
x8qyXs7LTLgQeOgMbbtdQRTAA5ceubIK
-----END CERTIFICATE-----`,
};

export const realClock: Machine = {
  wallMs: () => Date.now(),
  get elapsedMs() {
    return performance.now();
  },
  startTimer: (delayMs, task) => {
    const timeout = setTimeout(task, delayMs);
    return { cancel: () => clearTimeout(timeout) };
  },
};

export const LOOPBACK_ALLOWED = { kind: 'allow', loopback: true, hosts: [], cidrs: [] } as const;

export function deliveryOptions(changes: Partial<DeliveryOptions> = {}): DeliveryOptions {
  return {
    clock: realClock,
    randomness: { bytes: (count) => randomBytes(count) },
    signingKey: () => SIGNING_KEY,
    addresses: LOOPBACK_ALLOWED,
    timeoutMsMax: 5_000,
    responseBytesMax: 64 * 1024,
    responseMemoryBytesMax: 16 * 1024 * 1024,
    responseHeaderBytesMax: 16 * 1024,
    connectionsPerOriginMax: 8,
    originsMax: 100,
    verifyTls: true,
    ...changes,
  };
}

/** A delivery that is closed when the test ends. */
export function openDelivery(changes: Partial<DeliveryOptions> = {}) {
  const delivery = createDelivery(deliveryOptions(changes));
  onTestFinished(() => delivery.close());
  return delivery;
}

type MessageChanges = Partial<Omit<Message, 'settings'>> & { settings?: Partial<MessageSettings> };

export function claimOf(url: string, { settings, ...changes }: MessageChanges = {}, retried = 0): Claimed {
  return {
    message: {
      key: 1,
      id: 'msg_test',
      projectId: 1,
      url,
      origin: new URL(url).origin,
      method: 'POST',
      header: {},
      body: new Uint8Array(0),
      createdAtMs: 0,
      notBeforeMs: 0,
      ...changes,
      settings: { dialect: 'upstash', maxRetries: 3, ...settings },
    },
    retried,
    claimToken: 1,
    claimedAtMs: 0,
  };
}

/** With a callback, the body of the response is stored. */
export const KEEPS_BODY = {
  settings: { callback: { url: 'https://example.com/', method: 'POST', header: {} } },
} as const;

/** A signal that never aborts. */
export function untouched(): AbortSignal {
  return new AbortController().signal;
}

export function reasonOf(outcome: Outcome): string {
  return outcome.kind === 'unreachable' ? outcome.reason : outcome.kind;
}

export interface Received {
  method: string;
  url: string;
  /** As they came, name and value by turns. */
  rawHeaders: string[];
  headers: http.IncomingHttpHeaders;
  body: Buffer;
}

/** An HTTP endpoint on loopback that notes what it received. Answers 200 `ok` unless told otherwise. */
export async function startEndpoint(
  respond: (response: http.ServerResponse, received: Received) => void = (response) => response.end('ok'),
  host = '127.0.0.1',
) {
  const received: Received[] = [];
  const server = http.createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const { method = '', url = '', rawHeaders, headers } = request;
      const one = { method, url, rawHeaders, headers, body: Buffer.concat(pieces) };
      received.push(one);
      respond(response, one);
    });
  });
  const origin = await listen(server, host);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { received, port: Number(new URL(origin).port), server, origin };
}

/** A TCP endpoint on loopback under full control of the test; counts its connections. */
export async function startTcp(onConnection: (socket: net.Socket, nth: number) => void = () => {}, host = '127.0.0.1') {
  const sockets = new Set<net.Socket>();
  const state = { connections: 0 };
  const server = net.createServer((socket) => {
    state.connections += 1;
    sockets.add(socket);
    // Expected: the other side resets, which is what most of these tests are about.
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    onConnection(socket, state.connections);
  });
  const origin = await listen(server, host);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { state, sockets, port: Number(new URL(origin).port), server, origin };
}

/** Calls `onRequest` for each request head that ends with an empty line (no body expected). */
export function onEachHead(socket: net.Socket, onRequest: (nth: number) => void): void {
  let text = '';
  let nth = 0;
  socket.on('data', (piece) => {
    text += piece.toString('latin1');
    for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
      text = text.slice(end + 4);
      nth += 1;
      onRequest(nth);
    }
  });
}
