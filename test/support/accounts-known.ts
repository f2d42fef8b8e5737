/** Accounts for workers of which a test does not look at who may call: whatever has changed, they know it. */
import type { SharedAccounts } from '../../src/engine/deps.ts';

export function accountsKnown(): SharedAccounts {
  let known = 0;
  return {
    get version() {
      return known;
    },
    refresh: async () => {},
    noteNewest: (version) => {
      known = version;
    },
    noteUnknown: () => {},
  };
}
