/**
 * Counts on the stack the functions of ours that a publish passes between the router and SQL. The group commit and the batch
 * runner are between its two parts. With the embedded database, so are two threads: the client of the database thread on one
 * side, the server and the batcher on the other.
 */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { GroupCommit } from '../../src/store/batches/group-commit.ts';
import type { Transaction } from '../../src/store/driver.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { openWorld, type World } from '../api/support/world.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const before = Error.stackTraceLimit;
let world: World;
const endings: (() => unknown)[] = [];
beforeEach(async () => {
  Error.stackTraceLimit = 100;
  // With a clock that runs, a request on a slow machine is served in slices, whose stacks are shorter.
  world = await openWorld({ clock: new SimulatedClock() });
});
afterEach(async () => {
  Error.stackTraceLimit = before;
  for (const end of endings.splice(0).reverse()) end();
  await world.close();
});

/** The functions on the stack that are ours, the innermost first, without `outermost` and what has called it. */
function hops(outermost: RegExp): string[] {
  const frames = (new Error().stack ?? '').split('\n').filter((line) => line.includes('/src/'));
  const names = frames.map(
    (line) => /at (?:async )?([^ ]+ )?\(?.*\/src\/(.*):\d+:\d+/.exec(line)?.slice(1).join('').trim() ?? line,
  );
  const end = names.findIndex((name) => outermost.test(name));
  expect(end, names.join('\n')).not.toBe(-1);
  return names.slice(0, end);
}

/** Has `look` look at the stack whenever `method` is called of `object`, which does what it does all the same. */
function onCall<T extends object>(object: T, method: keyof T & string, look: (args: unknown[]) => void): void {
  const original = object[method] as (...args: unknown[]) => unknown;
  const looking = function (this: unknown, ...args: unknown[]): unknown {
    look(args);
    return original.apply(this, args);
  };
  Object.assign(object, { [method]: looking });
  endings.push(() => Object.assign(object, { [method]: original }));
}

it('seven from the router to the line for the next transaction', async () => {
  let found: string[] = [];
  onCall(GroupCommit.prototype, 'run', ([method]) => {
    if (method === 'accept') found = hops(/Edge.serve/);
  });
  await world.publish('https://ok.example/', {}, 'x');
  expect(found.length, found.join('\n')).toBe(7);
});

it('four from the commands of a batch to the statement', async () => {
  let found: string[] = [];
  onCall(SqliteDriver.prototype, 'transaction', (args) => {
    const [work] = args as [(tx: Transaction) => Promise<unknown>];
    args[0] = (tx: Transaction) => {
      onCall(tx, 'insertMany', ([table]) => {
        if (table === 'messages' && found.length === 0) found = [...hops(/^runExcept /), 'runExcept'];
      });
      return work(tx);
    };
  });
  await world.publish('https://ok.example/', {}, 'x');
  expect(found.length, found.join('\n')).toBe(4);
});
