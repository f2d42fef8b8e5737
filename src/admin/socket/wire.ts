/** Validates and parses the operator's commands and their responses. Each command and each response is a line of JSON. */
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { type Administration, CommandRefused } from './commands.ts';

export type CommandName = keyof Administration;

/** A longer line is refused: the arguments that an operator types are short. */
export const LINE_BYTES_MAX = 64 * 1024;

const Scope = Type.Union([Type.Literal('full'), Type.Literal('publish-only'), Type.Literal('read-only')]);

/** The schema of each command's request. `StoredAdministration` checks the rules about names. */
const REQUESTS = {
  listProjects: Type.Object({}),
  createProject: Type.Object({ name: Type.String() }),
  listTokens: Type.Object({ project: Type.Optional(Type.String()) }),
  createToken: Type.Object({ project: Type.String(), scope: Scope, name: Type.Optional(Type.String()) }),
  revokeToken: Type.Object({ id: Type.String() }),
};

const LineSchema = Type.Object({
  command: Type.Union(Object.keys(REQUESTS).map((name) => Type.Literal(name))),
  request: Type.Unknown(),
});

/** `answer`: the result of a command. `refused`: the reason. `failed`: an internal error, explained in the log. */
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

/** Throws `CommandRefused` for an unknown command, for example of a later version. */
export function readCommand(line: string): CommandLine {
  const value = parse(line);
  if (!Value.Check(LineSchema, value)) throw new CommandRefused('the running server does not know this command');
  const command = value.command as CommandName;
  if (!Value.Check(REQUESTS[command], value.request)) {
    throw new CommandRefused('the running server does not understand this command');
  }
  return { command, request: value.request };
}

/** Runs a command from `readCommand`, which has validated the command. */
export function runCommand(administration: Administration, { command, request }: CommandLine): Promise<unknown> {
  // TypeScript cannot infer that the request matches the command that is looked up by name.
  const method = administration[command] as (request: unknown) => Promise<unknown>;
  return method.call(administration, request);
}

/** Returns undefined if the line is not a response of Waypost. */
export function readResponse(line: string): SocketResponse | undefined {
  const value = parse(line);
  return Value.Check(ResponseSchema, value) ? value : undefined;
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined; // not JSON, so it is neither a command nor a response
  }
}
