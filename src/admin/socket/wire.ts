/** Encodes an operator's command, and its response, as a line of JSON. */
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { type Administration, Refused } from './commands.ts';

export type CommandName = keyof Administration;

/** Longer lines are refused: what an operator types is short. */
export const LINE_BYTES_MAX = 64 * 1024;

const Scope = Type.Union([Type.Literal('full'), Type.Literal('publish-only'), Type.Literal('read-only')]);

/** The shape of each command's request. Rules about names are checked where the commands are carried out. */
const REQUESTS = {
  listProjects: Type.Object({}),
  createProject: Type.Object({ name: Type.String() }),
  listTokens: Type.Object({ project: Type.Optional(Type.String()) }),
  createToken: Type.Object({ project: Type.String(), scope: Scope, name: Type.Optional(Type.String()) }),
  revokeToken: Type.Object({ id: Type.String() }),
};

const Line = Type.Object({
  command: Type.Union(Object.keys(REQUESTS).map((name) => Type.Literal(name))),
  request: Type.Unknown(),
});

/** `failed`: the server could not do it; its log says why. */
const ResponseSchema = Type.Union([
  Type.Object({ answer: Type.Unknown() }),
  Type.Object({ refused: Type.String() }),
  Type.Object({ failed: Type.String() }),
]);

export type SocketResponse = Static<typeof ResponseSchema>;

export interface CommandLine {
  command: CommandName;
  request: unknown;
}

/** Throws `Refused` for an unknown command, such as one of a later version. */
export function readCommand(line: string): CommandLine {
  const given = parse(line);
  if (!Value.Check(Line, given)) throw new Refused('the running server does not know this command');
  const command = given.command as CommandName;
  if (!Value.Check(REQUESTS[command], given.request)) {
    throw new Refused('the running server does not understand this command');
  }
  return { command, request: given.request };
}

/** Carries out a command that `readCommand` has read. */
export function runCommand(administration: Administration, { command, request }: CommandLine): Promise<unknown> {
  // TypeScript cannot see that the command and its request belong together once they are looked up by name.
  const method = administration[command] as (request: unknown) => Promise<unknown>;
  return method.call(administration, request);
}

/** `undefined`: not a response of a Waypost. */
export function readResponse(line: string): SocketResponse | undefined {
  const given = parse(line);
  return Value.Check(ResponseSchema, given) ? given : undefined;
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined; // not JSON, so it is neither a command nor a response
  }
}
