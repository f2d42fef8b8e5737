/** `waypost tokens`: lists, makes and revokes tokens, also while a server runs. */
import { storeSettingsHelp } from '../config/page.ts';
import { TOKEN_SCOPES, type TokenScope } from '../engine/accounts/store.ts';
import type { CreateTokenRequest, TokenEntry } from '../operations/socket/commands.ts';
import { columns, inZone, isoOf, minuteOf } from './columns.ts';
import {
  actionsOf,
  type Command,
  CommandFailed,
  EXIT,
  printJson,
  required,
  type Terminal,
  takeValue,
  takeWord,
} from './command.ts';
import { operate } from './operate.ts';

export const tokens: Command = {
  help: () =>
    `Usage: waypost tokens [list] [--project <name>] [--json] [options]
       waypost tokens create --project <name> --scope <scope> [--name <text>] [--json] [options]
       waypost tokens revoke <id> [--json] [options]

Works on the data folder, or on the database of DATABASE_URL, whether a server runs on it or not.

  list
      Every token by its id, or those of one project. The tokens themselves are kept nowhere.
  create
      Makes a token and prints it, once.
  revoke <id>
      Ends a token: nobody gets in with it from then on.
  --project <name>
      The project that the token belongs to.
  --scope <scope>
      full: everything. publish-only: publish, enqueue, batch and trigger. read-only: look at everything but the signing keys.
  --name <text>
      What to call the token in lists, such as who has it.
  --json
      Print JSON.
${storeSettingsHelp()}
Example: waypost tokens create --project shop --scope publish-only
`,
  ...actionsOf('tokens', {
    list: ['Every token by its id.', list],
    create: ['Makes a token and prints it, once.', create],
    revoke: ['Ends a token.', revoke],
  }),
};

async function list(args: readonly string[], terminal: Terminal, json: boolean): Promise<number> {
  const { value: project, rest } = takeValue(args, '--project');
  const request = project === undefined ? {} : { project };
  const entries = await operate(rest, terminal, (on) => on.listTokens(request));
  if (json) {
    printJson(terminal, entries.map(view));
    return EXIT.ok;
  }
  const rows = entries.map(({ id, project: owner, scope, name = '-', createdAtMs, lastUsedAtMs }) => {
    const lastUsed = lastUsedAtMs === undefined ? 'never' : minuteOf(lastUsedAtMs);
    return [id, owner, scope, minuteOf(createdAtMs), lastUsed, name];
  });
  terminal.print(columns([['ID', 'PROJECT', 'SCOPE', inZone('CREATED'), inZone('LAST USED'), 'NAME'], ...rows]));
  return EXIT.ok;
}

async function create(args: readonly string[], terminal: Terminal, json: boolean): Promise<number> {
  const { value: project, rest: afterProject } = takeValue(args, '--project');
  const { value: scope, rest: afterScope } = takeValue(afterProject, '--scope');
  const { value: name, rest } = takeValue(afterScope, '--name');
  const request: CreateTokenRequest = {
    project: required(project, 'tokens create: --project <name>'),
    scope: scopeOf(required(scope, 'tokens create: --scope <scope>')),
  };
  if (name !== undefined) request.name = name;
  const { token, ...entry } = await operate(rest, terminal, (on) => on.createToken(request));
  if (json) {
    printJson(terminal, { ...view(entry), token });
  } else {
    terminal.complain(`The token ${entry.id} is shown only now. Keep it where your app and nobody else reads it:\n\n`);
    terminal.print(`QSTASH_TOKEN=${token}\n`);
  }
  return EXIT.ok;
}

async function revoke(args: readonly string[], terminal: Terminal, json: boolean): Promise<number> {
  const { word, rest } = takeWord(args);
  const id = required(word, "tokens revoke: the token's id");
  const entry = await operate(rest, terminal, (on) => on.revokeToken({ id }));
  if (json) printJson(terminal, view(entry));
  else terminal.print(`Revoked ${entry.id}, a ${entry.scope} token of the project "${entry.project}".\n`);
  return EXIT.ok;
}

function scopeOf(text: string): TokenScope {
  const scope = TOKEN_SCOPES.find((known) => known === text);
  if (scope === undefined) {
    throw new CommandFailed(`--scope: must be ${TOKEN_SCOPES.join(', ')}, not ${JSON.stringify(text)}`, EXIT.usage);
  }
  return scope;
}

function view({ id, project, scope, name, createdAtMs, lastUsedAtMs }: TokenEntry) {
  return {
    id,
    project,
    scope,
    name,
    createdAt: isoOf(createdAtMs),
    lastUsedAt: lastUsedAtMs === undefined ? undefined : isoOf(lastUsedAtMs),
  };
}
