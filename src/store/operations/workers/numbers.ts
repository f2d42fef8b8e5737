/** Reserves unique numbers, and checks that the store can be read. */
import type { Queries } from '../../driver.ts';
import { MOVED_TABLES } from '../../move/tables.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { read, write } from '../operation.ts';

/**
 * Reserves `count` consecutive numbers for keys and claim tokens, and returns the first. No number is used twice, even
 * after a restart. With many writers, the batch has reserved the numbers before its transaction.
 */
export const reserveNumbers = write(
  { class: () => 'urgent' },
  async ({ tx, reserved }: WriteContext, args: { count: number }): Promise<number> =>
    reserved.get(args) ?? (await tx.reserve('keys and tokens', args.count)),
);

/** Reads no rows, but fails if a table is missing or not readable. */
const EVERY_TABLE = MOVED_TABLES.map(({ name }) => `select 1 as one from ${name} where 1 = 0`).join(' union all ');

export const ping = read((queries: Queries) => queries.query(EVERY_TABLE));
