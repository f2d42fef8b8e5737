/** How do callers get numbers that nobody else gets, and does the store answer at all? */
import type { Queries } from '../../driver.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { read, write } from '../operation.ts';

/** For keys and claim tokens: the first of `count`. Where others write too, they were taken before the transaction. */
export const reserveNumbers = write(
  { class: () => 'urgent' },
  async ({ tx, reserved }: WriteContext, args: { count: number }): Promise<number> =>
    reserved.get(args) ?? (await tx.reserve('keys and tokens', args.count)),
);

export const ping = read((queries: Queries) => queries.query('select 1 as one'));
