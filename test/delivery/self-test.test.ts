import { expect, it, vi } from 'vitest';
import { AddressGuard } from '../../src/delivery/addresses/address-guard.ts';
import { AddressGuardBroken, selfTest } from '../../src/delivery/addresses/self-test.ts';
import { deliveryOptions, LOOPBACK_ALLOWED } from './support.ts';

const POLICIES = [{ kind: 'deny' }, LOOPBACK_ALLOWED, { kind: 'all' }] as const;

it.each(POLICIES)('passes under %o', async (addresses) => {
  await expect(selfTest(deliveryOptions({ addresses }))).resolves.toBeUndefined();
});

it.each(POLICIES.slice(0, 2))('stops the start when the guard under %o lets everything pass', async (addresses) => {
  const broken = vi.spyOn(AddressGuard.prototype, 'blockedClass').mockReturnValue(undefined);
  try {
    await expect(selfTest(deliveryOptions({ addresses }))).rejects.toThrow(AddressGuardBroken);
  } finally {
    broken.mockRestore();
  }
});
