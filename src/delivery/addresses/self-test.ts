/**
 * Tests at each start that a delivery with the given options blocks forbidden addresses.
 *
 * In the past, HTTP clients have silently dropped options that are functions, such as our lookup. A server without the guard
 * is worse than a server that does not start.
 */
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import type { Claimed } from '../../engine/model.ts';
import { createDelivery, type DeliveryOptions } from '../delivery.ts';
import { Resolver } from './resolver.ts';

/** The delivery connected, or tried to connect, to a forbidden address: the server must not start. */
export class AddressGuardBroken extends Error {
  constructor(probe: string, found: string) {
    super(`the address guard failed its self-test: ${probe} was not refused (${found})`);
    this.name = 'AddressGuardBroken';
  }
}

/** A host name that only the resolver of the test knows. */
const PROBE_NAME = 'self-test.waypost.invalid';

/**
 * Builds a delivery with these options and attempts forbidden deliveries. Resolves when each was blocked
 * before any connection; throws AddressGuardBroken otherwise. Sends nothing outside this machine.
 */
export async function selfTest(options: DeliveryOptions): Promise<void> {
  switch (options.addresses.kind) {
    case 'all':
      return;
    case 'allow':
      // The operator may have listed loopback addresses, so this tests an address that no list can allow.
      await expectRefused(options, '169.254.169.254', ['169.254.169.254', '[::ffff:a9fe:a9fe]', PROBE_NAME], 80);
      return;
    case 'deny':
      await withCanary(async (port, connections) => {
        await expectRefused(options, '127.0.0.1', ['127.0.0.1', '[::ffff:7f00:1]', PROBE_NAME], port);
        if (connections() > 0) throw new AddressGuardBroken('127.0.0.1', 'a connection arrived');
      });
  }
}

async function expectRefused(options: DeliveryOptions, address: string, hosts: string[], port: number): Promise<void> {
  const delivery = createDelivery({
    ...options,
    timeoutMsMax: 1_000,
    resolver: new Resolver(async () => [{ address, family: 4 }]),
    signingKey: () => 'sig_selfTest',
  });
  try {
    for (const host of hosts) {
      const outcome = await delivery.attempt(probeOf(`http://${host}:${port}`), new AbortController().signal);
      if (outcome.kind === 'unreachable' && outcome.reason === 'blocked') continue;
      throw new AddressGuardBroken(host, outcome.kind === 'unreachable' ? outcome.error : outcome.kind);
    }
  } finally {
    await delivery.close();
  }
}

async function withCanary(test: (port: number, connections: () => number) => Promise<void>): Promise<void> {
  let connections = 0;
  const canary = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    canary.once('error', reject);
    canary.listen(0, '127.0.0.1', resolve);
  });
  try {
    await test((canary.address() as AddressInfo).port, () => connections);
  } finally {
    await new Promise((resolve) => canary.close(resolve));
  }
}

function probeOf(url: string): Claimed {
  return {
    message: {
      key: 0,
      id: 'msg_selfTest',
      projectId: 0,
      url,
      origin: new URL(url).origin,
      method: 'GET',
      header: Object.create(null),
      body: new Uint8Array(0),
      createdAtMs: 0,
      notBeforeMs: 0,
      settings: { dialect: 'upstash', maxRetries: 0 },
    },
    retried: 0,
    claimToken: 0,
    claimedAtMs: 0,
  };
}
