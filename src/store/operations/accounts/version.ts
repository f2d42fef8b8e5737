/** The version of projects, tokens and signing keys, by which workers notice changes. */
import type { Queries, Transaction } from '../../driver.ts';

/**
 * Each change of the accounts increments this version, so that the other workers read the accounts again. Only the time
 * at which a token was last used changes without a new version.
 */
export async function accountsVersion(queries: Queries): Promise<number> {
  const [row] = await queries.query<{ next: number }>("select next from numbers where name = 'accounts'");
  return row?.next ?? 0;
}

export async function noteChange(tx: Transaction): Promise<void> {
  await tx.send("update numbers set next = next + 1 where name = 'accounts'");
}
