/** The version of projects, tokens and signing keys, by which workers notice changes. */
import type { Queries, Transaction } from '../../driver.ts';

/**
 * Every change of the accounts, except the last use of a token, raises their version, so that the other workers read the
 * accounts again.
 */
export async function accountsVersion(queries: Queries): Promise<number> {
  const [row] = await queries.query<{ next: number }>("select next from numbers where name = 'accounts'");
  return row?.next ?? 0;
}

export async function noteChange(tx: Transaction): Promise<void> {
  await tx.send("update numbers set next = next + 1 where name = 'accounts'");
}
