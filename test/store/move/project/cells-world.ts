/** Two cells with a project that has rows in every table, and another project in each cell. */

import type { MoveProjectOptions } from '../../../../src/cells/move/move-project.ts';
import { OTHER_TABLES } from '../../../../src/cells/move/row-groups.ts';
import { emptyMinute } from '../../../../src/engine/minutes/counts.ts';
import type { ProjectId } from '../../../../src/engine/model.ts';
import { createStore } from '../../../../src/store/create.ts';
import type { Driver, SqlValue } from '../../../../src/store/driver.ts';
import { MOVED_TABLES } from '../../../../src/store/move/tables.ts';
import { placementOf } from '../../../../src/store/operations/locking/placement.ts';
import { checkInvariants } from '../../../../src/store/operations/reports/invariants.ts';
import type { Store } from '../../../../src/store/store.ts';
import { systemClock } from '../../../../src/system/system.ts';
import { NO_LIMITS, startRun, waiter } from '../../conformance/run-world.ts';
import { bytes, delivered, retrying, settlement, T0, World } from '../../conformance/world.ts';
import { useEverything } from '../../use-everything.ts';

export const FIRST = 1;
export const SECOND = 2;

export interface CellHere {
  driver: Driver;
  store: Store;
  world: World;
}

export interface Cells {
  first: CellHere;
  second: CellHere;
}

/**
 * Uses two empty databases. Project 1 is in the first cell, with rows in every table; 2 in the first, 3 in the second.
 */
export async function twoCells([first, second]: readonly [Driver, Driver]): Promise<Cells> {
  const one = storeOver(first);
  await one.store.cells.addCell({ name: 'second', sealedUrl: 'x', nowMs: T0, firstName: 'first' });
  for (const name of ['one', 'two', 'three'])
    await one.store.projects.ensureProject({ name, signingKeys: { current: 'c', next: 'n' }, nowMs: T0 });
  const two = storeOver(second);
  await two.store.cells.initializeCell({ cellId: SECOND });
  const directory = await one.store.projects.listProjects();
  await place(one, { 1: FIRST, 2: FIRST, 3: SECOND });
  await two.store.cells.adoptProjects({ projects: directory.filter(({ projectId }) => projectId === 3) });
  const cells = { first: await open(one), second: await open(two) };
  await fill(cells.first.world);
  await first.transaction(async (tx) => {
    await tx.insertMany('message_counts', ['project_id', 'day', 'messages'], [[1, 20_000, 5]]);
    await tx.insertMany('ending_runs', ['key', 'project_id', 'cancel_at_ms'], [[9_999, 1, 0]]);
  });
  await cells.first.world.accept({ projectId: 2 });
  for (let count = 0; count < 5; count += 1) await cells.second.world.accept({ projectId: 3 });
  return cells;
}

type Closed = Omit<CellHere, 'world'>;

export function storeOver(driver: Driver): Closed {
  return { driver, store: createStore(driver, { limits: NO_LIMITS }) };
}

/** Uses a database that is already a cell. */
export async function open(cell: Closed): Promise<CellHere> {
  cell.store.guardProjects();
  return { ...cell, world: await World.open(async () => cell.store) };
}

/** Sets the cells of projects, which otherwise depend on the number of projects. */
async function place({ driver }: Closed, cells: Record<ProjectId, number>): Promise<void> {
  await driver.transaction(async (tx) => {
    for (const [id, cell] of Object.entries(cells))
      await tx.run('update projects set cell = ?, placement = ? where id = ?', [
        cell,
        cell === FIRST ? 0 : 4,
        Number(id),
      ]);
  });
}

async function fill(world: World): Promise<void> {
  const { store } = world;
  await useEverything(world);
  for (let count = 0; count < 3; count += 1) {
    const { message, claimToken } = await world.acceptClaimed({
      body: bytes(`body ${count}`),
      createdAtMs: T0 + count,
    });
    const change = count % 2 === 0 ? delivered(T0 + count) : retrying(T0 + count, T0 + 1_000, 1);
    await store.messages.settle({ settlement: settlement(message, claimToken, change), nowMs: T0 + count });
    await world.accept({ createdAtMs: T0 + count * 1_000 });
    await world.acceptDead(T0 + count);
  }
  const projectId = 1;
  const endpoints = [{ url: 'https://example.com/', name: 'e' }];
  const limits = { groupsMax: 9, endpointsMax: 9 };
  await store.urlGroups.addEndpoints({ projectId, name: 'g', endpoints, limits, nowMs: T0 });
  await store.queues.saveQueue({ projectId, name: 'kept', parallelism: 1, isPaused: false, nowMs: T0 });
  const flowControl = { key: 'kept', parallelism: 1, periodS: 1 };
  for (let count = 0; count < 3; count += 1) {
    await world.accept({ settings: { queueName: 'kept' } });
    await world.accept({ settings: { flowControl } });
    await world.accept({ url: 'https://busy.example/' });
  }
  await world.accept({ deduplication: { hash: 'kept', expiresAtMs: T0 * 2 } });
  const run = await startRun(world, { id: 'kept' });
  const waiting = await startRun(world, { id: 'waiting' });
  await store.waiters.addWaiter({ waiter: waiter(world, waiting), taken: undefined, nowMs: T0 });
  const pendingEvent = { key: world.number(), body: bytes('m') };
  await store.waiters.savePendingEvent({
    projectId,
    runKey: run.key,
    eventId: 'e',
    ...pendingEvent,
    limits: { events: 9, bytes: 999 },
  });
  await store.schedules.saveSchedule({
    schedule: {
      ...{ key: world.number(), projectId, id: 'kept', createdAtMs: T0 },
      plan: {
        ...{ cron: '* * * * *', method: 'POST', header: {}, body: bytes('s') },
        destination: { kind: 'url', url: 'https://example.com/' },
        settings: { dialect: 'upstash', maxRetries: 3 },
      },
      state: { version: 1, isPaused: false, nextAtMs: T0 + 60_000 },
    },
    fromVersion: undefined,
    schedulesMax: 9,
  });
  await store.minutes.addMinutes({ projectId, minutes: [emptyMinute(T0), emptyMinute(T0 + 60_000)] });
  await world.claim({ capacityByOrigin: { 'https://busy.example': 0 }, limit: 4 });
}

/** Conditions that find the rows of tables that do not name the project. */
const OWNERS: Record<string, string> = {
  log_details: 'seq in (select seq from logs where project_id = ?)',
  schedule_plans: 'key in (select key from schedules where project_id = ?)',
  journal: 'run_key in (select key from runs where project_id = ?)',
  invocations: 'run_key in (select key from runs where project_id = ?)',
};

/** All rows of a project as texts, by table. */
export async function rowsOf(
  { driver }: Pick<CellHere, 'driver'>,
  projectId: ProjectId,
): Promise<Record<string, string[]>> {
  const all: Record<string, string[]> = {};
  for (const { name, columns } of MOVED_TABLES) {
    if (OTHER_TABLES.includes(name)) continue;
    const rows = await driver.read((queries) =>
      queries.query<Record<string, SqlValue>>(
        `select ${columns.join(', ')} from ${name} where ${OWNERS[name] ?? 'project_id = ?'}`,
        [projectId],
      ),
    );
    all[name] = rows.map((row) => JSON.stringify(columns.map((column) => plain(row[column])))).toSorted();
  }
  return all;
}

/** The number of rows in all tables with rows of projects. */
export async function countAll({ driver }: Pick<CellHere, 'driver'>): Promise<number> {
  let count = 0;
  for (const { name } of MOVED_TABLES) {
    if (OTHER_TABLES.includes(name)) continue;
    const [row] = await driver.read((queries) =>
      queries.query<{ rows: number }>(`select count(*) as rows from ${name}`),
    );
    count += row?.rows ?? 0;
  }
  return count;
}

function plain(value: SqlValue | undefined): SqlValue | undefined {
  return value instanceof Uint8Array ? `bytes ${Buffer.from(value).toString('base64')}` : value;
}

/** The findings of the doctor. */
export async function findingsIn({ driver }: Pick<CellHere, 'driver'>): Promise<string[]> {
  const found = await driver.read((queries) => checkInvariants(queries));
  return found.flatMap(({ statement, offenders }) => offenders.map((name) => `${statement} ${name}`));
}

export function isNothing(rows: Record<string, string[]>): boolean {
  return Object.values(rows).every((each) => each.length === 0);
}

/** The cell of project 1, and its placement in both. */
export async function whereabouts({ first, second }: Cells): Promise<(number | string | undefined)[]> {
  const { projects } = await first.store.projects.readAccounts();
  const { cellId } = projects.find(({ projectId }) => projectId === 1) ?? {};
  const placements = [first, second].map(({ driver }) => driver.read((queries) => placementOf(queries, 1)));
  return [cellId, ...(await Promise.all(placements))];
}

/** Moves project 1 to the second cell. */
export function there({ first, second }: Cells, options: Partial<MoveProjectOptions> = {}): MoveProjectOptions {
  return {
    ...{ projectId: 1, fromCell: FIRST, toCell: SECOND, mover: 'm', directory: first.store.moves },
    ...{ source: first.driver, target: second.driver, clock: systemClock },
    ...options,
  };
}
