/**
 * Assigned numbers are never assigned again, even if the server that assigned them is gone and the next one has older
 * data.
 */
import pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { systemClock } from '../../src/system/system.ts';
import { freshDatabase } from '../support/postgres/shared.ts';

let url: string;
let driver: PostgresDriver;

beforeEach(async () => {
  url = await freshDatabase();
  driver = new PostgresDriver({ url, connectionsMax: 4, timeoutMs: 10_000, prepares: true, clock: systemClock });
  await migrate(driver);
});
afterEach(() => driver.close());

const reserve = (count: number) => driver.transaction((tx) => tx.reserve('keys and tokens', count));

/** The state of a promoted standby that had received the numbers below `next`. */
async function failOver(next: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("update numbers set next = $1, server = 'the primary, which is gone'", [next]);
  } finally {
    await client.end();
  }
}

it('follow each other without a gap while one server assigns them', async () => {
  const first = await reserve(20);
  expect(await reserve(5)).toBe(first + 20);
  expect(await reserve(1)).toBe(first + 25);
});

it('are not assigned again by another server, although it does not know them', async () => {
  const lost = await reserve(20_000);
  await failOver(lost);
  const next = await reserve(10);
  expect(next).toBeGreaterThanOrEqual(lost + 20_000);
  expect(await reserve(10)).toBe(next + 10);
});

it('are not assigned again by a third server, which knows neither them nor those of the second server', async () => {
  const known = await reserve(1);
  await failOver(known);
  const bySecond = await reserve(10);
  await failOver(known);
  const byThird = await reserve(10);
  expect(Math.abs(byThird - bySecond)).toBeGreaterThanOrEqual(10);
});

it('belong to nobody if the transaction that took them is rolled back', async () => {
  let taken = 0;
  const failing = driver.transaction(async (tx) => {
    taken = await tx.reserve('keys and tokens', 7);
    throw new Error('undone');
  });
  await expect(failing).rejects.toThrow('undone');
  expect(await reserve(1)).toBe(taken);
});
