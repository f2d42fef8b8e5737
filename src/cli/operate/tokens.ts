/** `waypost tokens`: lists, creates and revokes tokens, also while a server runs. */

import type { CreateTokenRequest, TokenEntry } from '../../admin/socket/commands.ts';
import { TOKEN_SCOPES, type TokenScope } from '../../engine/accounts/store.ts';
import { columns, inZone, isoOf, minuteOf } from '../columns.ts';
import { CommandFailed, EXIT, printJson, required, type Terminal } from '../command.ts';
import { commandWithSettings, type ParsedCommand } from '../command-with-settings.ts';
import { operate } from './operate.ts';

export const tokens = commandWithSettings(
  'tokens',
  {
    about: `Usage: waypost tokens [list] [--project <name>] [--json] [options]
       waypost tokens create --project <name> --scope <scope> [--name <text>] [--json] [options]
       waypost tokens revoke <id> [--json] [options]

Works on the data folder, or on the database of DATABASE_URL, whether a server is running on it or not.

  list
      Lists every token by its id, or those of one project. The tokens themselves are not stored.
  create
      Creates a token and prints it once.
  revoke <id>
      Revokes a token at once, in running servers too.`,
    options: {
      '--project <name>': 'The project that the token belongs to.',
      '--scope <scope>':
        'full: everything. publish-only: publish, enqueue, batch and trigger. read-only: read everything except the signing keys.',
      '--name <text>': 'Name of the token in lists, such as who uses it.',
      '--json': 'Print JSON.',
    },
    settings: 'store',
    example: 'tokens create --project shop --scope publish-only',
  },
  {
    list: ['Lists every token by its id.', list],
    create: ['Creates a token and prints it once.', create],
    revoke: ['Revokes a token.', revoke, "the token's id"],
  },
);

async function list(parsed: ParsedCommand, terminal: Terminal): Promise<number> {
  const project = parsed.value('project');
  const request = project === undefined ? {} : { project };
  const entries = await operate(parsed.settings, terminal, (admin) => admin.listTokens(request));
  if (parsed.has('json')) {
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

async function create(parsed: ParsedCommand, terminal: Terminal): Promise<number> {
  const request: CreateTokenRequest = {
    project: required(parsed.value('project'), 'tokens create: --project <name>'),
    scope: scopeOf(required(parsed.value('scope'), 'tokens create: --scope <scope>')),
  };
  const name = parsed.value('name');
  if (name !== undefined) request.name = name;
  const { token, ...entry } = await operate(parsed.settings, terminal, (admin) => admin.createToken(request));
  if (parsed.has('json')) {
    printJson(terminal, { ...view(entry), token });
  } else {
    terminal.printError(`The token ${entry.id} is shown only once. Store it where only your app can read it:\n\n`);
    terminal.print(`QSTASH_TOKEN=${token}\n`);
  }
  return EXIT.ok;
}

async function revoke(parsed: ParsedCommand, terminal: Terminal): Promise<number> {
  const entry = await operate(parsed.settings, terminal, (admin) => admin.revokeToken({ id: parsed.word }));
  if (parsed.has('json')) printJson(terminal, view(entry));
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
