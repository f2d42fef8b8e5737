/** The part of a store whose methods are the operations of a file: each runs the one that has its name. */
import type { Connection } from '../connection.ts';
import type { ReadMethod, WriteMethod } from '../operations/all.ts';
import type { Read, Write } from '../operations/operation.ts';

/** `File`: what the file exports. */
type Derived<File> = {
  [M in keyof File as File[M] extends { kind: 'single' | 'read' } ? M : never]: MethodOf<File[M]>;
};

type MethodOf<Operation> =
  Operation extends Read<infer Args, infer _Answer, infer Told>
    ? Method<Args, Told>
    : Operation extends Write<infer _Args, infer Answer, infer Given>
      ? Method<Given, Answer>
      : never;

type Method<Args, Answer> = keyof Args extends never ? () => Promise<Answer> : (args: Args) => Promise<Answer>;

type Operation = Read<never, unknown> | Write<never, unknown, never>;

export function derive<File extends object>(connection: Connection, file: File): Derived<File> {
  const operations = Object.entries(file as Record<string, unknown>).filter(isOperation);
  return Object.fromEntries(
    operations.map(([name, operation]) => [name, methodOf(connection, name, operation)]),
  ) as Derived<File>;
}

function isOperation(entry: [string, unknown]): entry is [string, Operation] {
  const [, value] = entry;
  return typeof value === 'function' && 'kind' in value;
}

function methodOf(connection: Connection, name: string, operation: Operation): (args: never) => Promise<unknown> {
  if (operation.kind === 'single') return (args) => connection.write(name as WriteMethod, operation.encode(args));
  return async (args) => operation.decode((await connection.read(name as ReadMethod, args)) as never, args);
}
