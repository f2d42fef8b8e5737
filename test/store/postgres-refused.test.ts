/** A server may refuse the rows of one command for its own reasons, such as a trigger or a limit of an index. */
import pg from 'pg';
import { expect, it } from 'vitest';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import { systemClock } from '../../src/system/system.ts';
import { migratedDatabase } from '../support/postgres/shared.ts';
import { World } from './conformance/world.ts';

it('refuses one command of a batch as unavailable, and saves the others', async () => {
  const url = await migratedDatabase();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`create function refuse() returns trigger language plpgsql as $$
      begin if new.url like '%refused%' then raise exception 'not this one'; end if; return new; end $$;
    create trigger refuses before insert on contents for each row execute function refuse()`);
  await client.end();
  const onFatal = (error: Error) => {
    throw error;
  };
  const world = await World.open(() =>
    openPostgresStore({ url, listenUrl: '', clock: systemClock, onFatal, sender: 'test' }),
  );
  const [refused, saved] = await Promise.allSettled([
    world.accept({ url: 'https://refused.example/' }),
    world.accept({ url: 'https://saved.example/' }),
  ]);
  await world.store.close();
  expect(refused).toMatchObject({ status: 'rejected', reason: expect.any(StoreUnavailable) });
  expect(saved).toMatchObject({ status: 'fulfilled' });
});
