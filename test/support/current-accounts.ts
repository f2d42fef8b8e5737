/** Accounts that are always up to date, for tests of workers that do not check access. */
import type { SharedAccounts } from '../../src/engine/deps.ts';

export function currentAccounts(): SharedAccounts {
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
