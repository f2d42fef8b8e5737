/** Derives the methods of a store from the operations and a connection. Everything here runs in the caller's thread. */
import type { PageRequest } from '../engine/lists/page.ts';
import type { Connection } from './connection.ts';
import { OPERATIONS } from './operations/all.ts';
import type { PageRows, Slice } from './operations/lists/page.ts';
import { readPage } from './operations/lists/read-page.ts';
import type { MergedWrite, PagedRead, Read, Write } from './operations/operation.ts';
import type { Operations, SqlStore } from './store.ts';

export function deriveStore({ dropTables, ...connection }: Connection): SqlStore {
  const nouns = Object.entries(OPERATIONS).map(([noun, files]) => [noun, deriveMethods(connection, files)]);
  const operations = Object.fromEntries(nouns) as Operations;
  const { retention } = operations;
  const { read, write, endOfTurn: _, ...upkeep } = connection;
  return {
    ...operations,
    ...upkeep,
    retention: {
      /** Also drops whole tables of logs, where the database partitions them. */
      async dropExpired(bounds) {
        const mayLeaveRows = await retention.dropExpired(bounds);
        const mayLeaveTables = (await dropTables?.(bounds)) ?? false;
        return mayLeaveRows || mayLeaveTables;
      },
    },
    async ping() {
      // Includes a write, because a transaction without a write would succeed even on a full disk.
      await Promise.all([read('ping', {}), write('reserveNumbers', { count: 1 })]);
    },
  };
}

type Operation =
  | Write<unknown, unknown, unknown, unknown>
  | MergedWrite<unknown, unknown, unknown, unknown>
  | Read<unknown, unknown, unknown, unknown>
  | PagedRead<unknown, unknown, PagedInput, unknown>;

type PagedInput = { page: PageRequest; filter: object };

type Method = (input: unknown) => Promise<unknown>;

type Call = (name: string, args: unknown) => Promise<unknown>;

function deriveMethods(connection: Connection, files: object): Record<string, Method> {
  const operations = Object.entries<unknown>({ ...files }).filter(isOperation);
  return Object.fromEntries(operations.map(([name, operation]) => [name, methodOf(connection, name, operation)]));
}

function isOperation(entry: [string, unknown]): entry is [string, Operation] {
  const [, value] = entry;
  return typeof value === 'function' && 'kind' in value;
}

/** The command is queued when the method returns, unless the operation has a codec that pauses. */
function methodOf(connection: Connection, name: string, operation: Operation): Method {
  const { read, write } = connection as unknown as Record<'read' | 'write', Call>;
  const pause = () => connection.endOfTurn?.();
  if (operation.kind === 'paged') {
    const { encode, decode, windowsMax } = operation.pages;
    return (input) => {
      const { filter, page } = input as PagedInput;
      const readWindow = async (slice: Slice, window: number) => {
        const args = { ...encode(input as PagedInput, window), slice };
        const rows = (await read(name, args)) as PageRows<unknown> & { bytes: number };
        return { ...rows, items: await decode(rows, args, pause) };
      };
      return readPage(filter, page, readWindow, windowsMax);
    };
  }
  const { encode, decode, kind } = operation;
  const run = kind === 'read' ? read.bind(connection, name) : write.bind(connection, name);
  const call = decode ? (args: unknown) => run(args).then((result) => decode(result, args, pause)) : run;
  if (!encode) return call;
  return (input) => {
    const args = encode(input, pause);
    return args instanceof Promise ? args.then(call) : call(args);
  };
}
