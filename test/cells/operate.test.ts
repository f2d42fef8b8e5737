/** Commands for the operator of several cells: their load, and how projects are redistributed. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listen, portOf } from '../support/listen.ts';
import { copyOf, freshDatabase } from '../support/postgres/shared.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { type CommandResult, giveCommand, outputOf } from '../support/waypost-command.ts';

let folder: string;
let databaseUrl: string;
let env: Record<string, string>;
/** A database with two cells, which is copied for each case. */
let prepared: string;

function goTo(url: string): void {
  databaseUrl = url;
  env = { WAYPOST_DATABASE_URL: databaseUrl, WAYPOST_DATA_DIR: folder, WAYPOST_DATABASE_TIMEOUT: '2s' };
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waypost-operate-'));
  prepared = await freshDatabase();
  goTo(prepared);
  await done('init', '--project', 'one');
  await done('cells', 'add', 'second', '--schema', 'second');
});
beforeEach(async () => goTo(await copyOf(prepared)));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const give = (...args: string[]): Promise<CommandResult> => giveCommand(args, env);

const done = (...args: string[]): Promise<string> => outputOf(args, env);

interface Listed {
  name: string;
  projects: number;
  messagesPerMinute: number;
  share: number;
}

const listed = async (): Promise<Listed[]> => JSON.parse(await done('cells', '--json'));
const counts = async () => (await listed()).map(({ projects }) => projects);

async function execute(text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query(text, values);
  await client.end();
  return rows;
}

/** Creates unused projects in the first cell. */
async function makeInFirst(...names: string[]): Promise<void> {
  await done('cells', 'drain', 'second');
  for (const name of names) await done('projects', 'create', name);
  await done('cells', 'undrain', 'second');
}

/** Records `messages` accepted messages of the project in this minute, in the cell with this schema. */
async function busy(project: string, messages: number, schema = 'public'): Promise<void> {
  const columns = await execute(
    "select column_name as name from information_schema.columns where table_schema = $1 and table_name = 'minutes'",
    [schema],
  );
  const others = columns.map(({ name }) => name).filter((name) => name !== 'project_id' && name !== 'at_ms');
  await execute(
    `insert into ${schema}.minutes (project_id, at_ms, ${others.join(', ')})
     select id, $2, ${others.map((name) => (name === 'accepted' ? messages : 0)).join(', ')} from projects where name = $1`,
    [project, Math.floor(Date.now() / 60_000) * 60_000],
  );
}

/** Records a move of the project whose command was killed. */
async function insertStuckMove(project: string, phase: string): Promise<void> {
  await execute(
    `insert into project_moves (project_id, from_cell, to_cell, phase, started_at_ms, mover, seen_at_ms)
     select id, 1, 2, $2, 0, 'dead', 0 from projects where name = $1`,
    [project, phase],
  );
}

describe('waypost cells', () => {
  it('prints the state of each cell, and its share of the load', async () => {
    await busy('one', 1_200);
    await done('projects', 'create', 'two');
    const [first, second] = await listed();
    expect(first).toMatchObject({ name: 'first', projects: 1, messagesPerMinute: 20, unfinished: 0, due: 0 });
    expect(second).toMatchObject({ name: 'second', projects: 1, messagesPerMinute: 0, moves: [] });
    expect(first?.share).toBeCloseTo(1 - (second?.share ?? 0));
    expect(await done('cells')).toMatch(/^first .* 20 +\d+ +83 % +ready$/m);
  });

  it('lists projects that are being moved, and marks a move whose command has ended as stuck', async () => {
    await insertStuckMove('one', 'copying');
    const moves = [
      { project: 'one', to: 'second', phase: 'copying', isStuck: true, begunAt: '1970-01-01T00:00:00.000Z' },
    ];
    expect(await listed()).toEqual([
      expect.objectContaining({ name: 'first', moves }),
      expect.objectContaining({ name: 'second', moves: [] }),
    ]);
    expect(await done('cells')).toMatch(/^one +first +second +copying +1970-01-01 00:00 +stuck: /m);
    await execute('update project_moves set seen_at_ms = $1', [Date.now() + 60_000]);
    expect(await done('cells')).toMatch(/^one .* moving$/m);
  });
});

describe('while a cell accepts connections and never responds', () => {
  let silent: Server;
  let proxy: TcpProxy;

  beforeEach(async () => {
    const other = await freshDatabase();
    proxy = await TcpProxy.open(Number(new URL(other).port));
    await done('cells', 'add', 'hanging', '--url', proxy.through(other));
    await makeInFirst('a', 'b', 'c');
    silent = createServer(() => {});
    await listen(silent);
    proxy.pointTo(portOf(silent));
    proxy.cutAll();
  });
  afterEach(async () => {
    await proxy.close();
    silent.close();
  });

  it('the cell is listed as unreachable, no move to it is planned, and a new project is placed elsewhere', async () => {
    expect(await done('cells')).toMatch(/^hanging .* unreachable: \S+/m);
    const { moves, cells } = JSON.parse(await done('cells', 'balance', '--json'));
    expect(moves).not.toEqual([]);
    expect(moves).not.toContainEqual(expect.objectContaining({ to: 'hanging' }));
    expect(cells.at(-1)).toEqual({ name: 'hanging', isDraining: false });
    await done('projects', 'create', 'd');
    expect((await execute("select cell from projects where name = 'd'"))[0]).toEqual({ cell: '2' });
  });
});

describe('waypost cells balance', () => {
  it('prints its plan, carries it out on request, and then has nothing to do', async () => {
    await makeInFirst('a', 'b', 'c');
    const planned = await give('cells', 'balance');
    expect(planned).toMatchObject({ code: 0, stderr: 'Nothing was moved. Run it again with --yes to move them.\n' });
    expect(
      planned.stdout.match(/^\w+ +first +second +0 +the cell has more than its share of the load$/gm),
    ).toHaveLength(2);
    expect(await counts()).toEqual([4, 0]);
    const carriedOut = await give('cells', 'balance', '--yes');
    expect(carriedOut.code).toBe(0);
    expect(carriedOut.stderr.match(/^moved: \w+, unavailable for \d+ ms$/gm)).toHaveLength(2);
    expect(await counts()).toEqual([2, 2]);
    expect(await done('cells', 'balance')).toContain('No project needs to move.');
    expect(JSON.parse(await done('cells', 'balance', '--yes', '--json'))).toMatchObject({ done: [], failed: [] });
    expect(await done('doctor', '--json')).toContain('"isSound":true');
  });

  it('empties a draining cell, including projects that no worker has seen there', async () => {
    await done('cells', 'add', 'third', '--schema', 'third');
    await done('projects', 'create', 'unseen');
    await done('projects', 'move', 'unseen', '--to', 'third');
    await done('cells', 'drain', 'third');
    await makeInFirst('a', 'b');
    await done('cells', 'drain', 'first');
    const { done: moved } = JSON.parse(await done('cells', 'balance', '--yes', '--json'));
    expect(moved).toHaveLength(4);
    expect(await counts()).toEqual([0, 4, 0]);
  });

  it('first finishes interrupted moves', async () => {
    await insertStuckMove('one', 'copying');
    const { stdout, stderr } = await give('cells', 'balance');
    expect([stdout, stderr]).toEqual([expect.stringMatching(/^one +first +second +- +started$/m), expect.any(String)]);
    await done('cells', 'balance', '--yes');
    expect(await counts()).toEqual([0, 1]);
    expect(await execute('select * from project_moves')).toEqual([]);
  });

  it('first rolls back cancelled moves', async () => {
    await makeInFirst('a');
    await done('cells', 'drain', 'second');
    await insertStuckMove('one', 'cancelled');
    await done('cells', 'balance', '--yes');
    expect(await counts()).toEqual([2, 0]);
    expect(await execute('select * from project_moves')).toEqual([]);
  });

  it('moves the other projects when one cannot be moved, and reports it', async () => {
    await makeInFirst('a', 'b');
    await done('cells', 'drain', 'first');
    await execute("insert into second.projects select id, name, '', '', 0, 2, 0 from projects where name = 'a'");
    const { code, stdout } = await give('cells', 'balance', '--yes', '--json');
    const { done: moved, failed } = JSON.parse(stdout);
    expect([code, moved.length, failed]).toEqual([
      1,
      2,
      [{ project: 'a', reason: 'the project is here in the cell to which it is moved' }],
    ]);
  });
});

describe('a new project', () => {
  it('is placed in the cell with the least load, even if another has fewer projects', async () => {
    await busy('one', 60_000);
    await done('projects', 'create', 'b');
    await done('projects', 'create', 'c');
    await done('init', '--project', 'd');
    expect(await counts()).toEqual([1, 3]);
  });

  it('is rejected while all cells drain', async () => {
    await done('cells', 'drain', 'first');
    await done('cells', 'drain', 'second');
    expect(await give('projects', 'create', 'b')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no cell takes new projects now'),
    });
  });
});

describe('waypost doctor', () => {
  const failures = async (): Promise<string[]> => {
    const { code, stdout } = await give('doctor');
    const lines = stdout.split('\n');
    const failed = lines.flatMap((line, at) => (line.startsWith('FAIL') ? [line, lines[at + 1] ?? ''] : []));
    expect(code).toBe(failed.length > 0 ? 1 : 0);
    return failed.map((line) => line.trim());
  };

  it('finds no problems in cells that have been used', async () => {
    await makeInFirst('a');
    await done('projects', 'move', 'one', '--to', 'second');
    await done('projects', 'move', 'one', '--to', 'first');
    expect(await failures()).toEqual([]);
  });

  it('reports a move whose command has ended, and the remedy', async () => {
    await insertStuckMove('one', 'copying');
    expect(await failures()).toEqual([
      'FAIL  Every move of a project is being made by a command.',
      'project one, from first to second, copying: "waypost cells balance --yes" finishes it, or "waypost projects move one --cancel" ends it',
    ]);
    await done('cells', 'balance', '--yes');
    expect(await failures()).toEqual([]);
  });

  it('reports a project whose cell and directory disagree about its placement', async () => {
    await execute('update projects set placement = 3');
    expect(await failures()).toEqual([
      'FAIL  Every project is written to in the cell that the directory names.',
      'project one: gone here, and in first by the directory',
    ]);
  });

  it('reports a cell that assigns numbers of another cell', async () => {
    await execute("update second.numbers set next = 5 where name = 'queues'");
    expect(await failures()).toEqual([
      'FAIL  The numbers of a cell come from its range.',
      'queues: the next is 5 and the end 17592186044416, instead of 8796093022209 to 17592186044416',
    ]);
  });

  it('reports a project with rows left in its former cell', async () => {
    await done('projects', 'move', 'one', '--to', 'second');
    await busy('one', 1);
    expect(await failures()).toEqual(['FAIL  Nothing is here of a project that lives in another cell.', 'project 1']);
  });
});
