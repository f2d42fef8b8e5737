/** How do callers get numbers that no other caller gets, and does the store answer at all? */
import type { Queries } from '../../driver.ts';
import { MOVED_TABLES } from '../../move/tables.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { read, write } from '../operation.ts';

/**
 * Reserves `count` consecutive numbers for keys and claim tokens, and returns the first: no number is given out twice, also after
 * a restart. With many writers they were taken before.
 */
export const reserveNumbers = write(
  { class: () => 'urgent' },
  async ({ tx, reserved }: WriteContext, args: { count: number }): Promise<number> =>
    reserved.get(args) ?? (await tx.reserve('keys and tokens', args.count)),
);

/** Fails where a table is missing, or may not be read. */
const EVERY_TABLE = MOVED_TABLES.map(({ name }) => `select 1 as one from ${name} where 1 = 0`).join(' union all ');

export const ping = read((queries: Queries) => queries.query(EVERY_TABLE));
