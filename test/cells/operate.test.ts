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
/** A database with two cells: each case has a copy of it. */
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

/** In the first cell: projects that nobody has used yet. */
async function makeInFirst(...names: string[]): Promise<void> {
  await done('cells', 'drain', 'second');
  for (const name of names) await done('projects', 'create', name);
  await done('cells', 'undrain', 'second');
}

/** As if the project had been sent so many messages in this minute, in the cell with this schema. */
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

/** As if the command that moves the project had been killed. */
async function beginAndDie(project: string, phase: string): Promise<void> {
  await execute(
    `insert into project_moves (project_id, from_cell, to_cell, phase, started_at_ms, mover, seen_at_ms)
     select id, 1, 2, $2, 0, 'dead', 0 from projects where name = $1`,
    [project, phase],
  );
}

describe('waypost cells', () => {
  it('says what each cell does, and which part of the load it has', async () => {
    await busy('one', 1_200);
    await done('projects', 'create', 'two');
    const [first, second] = await listed();
    expect(first).toMatchObject({ name: 'first', projects: 1, messagesPerMinute: 20, unfinished: 0, due: 0 });
    expect(second).toMatchObject({ name: 'second', projects: 1, messagesPerMinute: 0, moves: [] });
    expect(first?.share).toBeCloseTo(1 - (second?.share ?? 0));
    expect(await done('cells')).toMatch(/^first .* 20 +\d+ +83 % +ready$/m);
  });

  it('names projects on their way, and says of a move whose command has ended that it is stuck', async () => {
    await beginAndDie('one', 'copying');
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

describe('while a cell takes connections and says nothing', () => {
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

  it('cells are listed without it, nothing is planned into it, and a new project lives elsewhere', async () => {
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
  it('says what it would do, does it when told so, and then has nothing to do', async () => {
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

  it('empties a cell that drains, also of projects that no worker has seen there', async () => {
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

  it('first finishes what was interrupted', async () => {
    await beginAndDie('one', 'copying');
    const { stdout, stderr } = await give('cells', 'balance');
    expect([stdout, stderr]).toEqual([expect.stringMatching(/^one +first +second +- +started$/m), expect.any(String)]);
    await done('cells', 'balance', '--yes');
    expect(await counts()).toEqual([0, 1]);
    expect(await execute('select * from project_moves')).toEqual([]);
  });

  it('first takes back what was cancelled', async () => {
    await makeInFirst('a');
    await done('cells', 'drain', 'second');
    await beginAndDie('one', 'cancelled');
    await done('cells', 'balance', '--yes');
    expect(await counts()).toEqual([2, 0]);
    expect(await execute('select * from project_moves')).toEqual([]);
  });

  it('goes on with the others when a project cannot be moved, and says so', async () => {
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
  it('lives in the cell with the least load, and not in the one with the fewest projects', async () => {
    await busy('one', 60_000);
    await done('projects', 'create', 'b');
    await done('projects', 'create', 'c');
    await done('init', '--project', 'd');
    expect(await counts()).toEqual([1, 3]);
  });

  it('is refused while all cells drain', async () => {
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

  it('finds nothing wrong with cells that have been used', async () => {
    await makeInFirst('a');
    await done('projects', 'move', 'one', '--to', 'second');
    await done('projects', 'move', 'one', '--to', 'first');
    expect(await failures()).toEqual([]);
  });

  it('names a move whose command has ended, and what to do', async () => {
    await beginAndDie('one', 'copying');
    expect(await failures()).toEqual([
      'FAIL  Every move of a project is being made by a command.',
      'project one, from first to second, copying: "waypost cells balance --yes" finishes it, or "waypost projects move one --cancel" ends it',
    ]);
    await done('cells', 'balance', '--yes');
    expect(await failures()).toEqual([]);
  });

  it('names a project that its cell and the directory see in different places', async () => {
    await execute('update projects set placement = 3');
    expect(await failures()).toEqual([
      'FAIL  Every project is written to in the cell that the directory names.',
      'project one: gone here, and in first by the directory',
    ]);
  });

  it('names a cell that gives numbers of another one', async () => {
    await execute("update second.numbers set next = 5 where name = 'queues'");
    expect(await failures()).toEqual([
      'FAIL  The numbers of a cell come from its range.',
      'queues: the next is 5 and the end 17592186044416, instead of 8796093022209 to 17592186044416',
    ]);
  });

  it('names a project of which something was left in a cell that it has left', async () => {
    await done('projects', 'move', 'one', '--to', 'second');
    await busy('one', 1);
    expect(await failures()).toEqual(['FAIL  Nothing is here of a project that lives in another cell.', 'project 1']);
  });
});
