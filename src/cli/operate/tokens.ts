/** `waypost tokens`: lists, makes and revokes tokens, also while a server runs. */

import type { CreateTokenRequest, TokenEntry } from '../../admin/socket/commands.ts';
import { TOKEN_SCOPES, type TokenScope } from '../../engine/accounts/store.ts';
import { columns, inZone, isoOf, minuteOf } from '../columns.ts';
import { CommandFailed, EXIT, printJson, required, type Terminal } from '../command.ts';
import { configured, type Given } from '../configured.ts';
import { operate } from './operate.ts';

export const tokens = configured(
  'tokens',
  {
    about: `Usage: waypost tokens [list] [--project <name>] [--json] [options]
       waypost tokens create --project <name> --scope <scope> [--name <text>] [--json] [options]
       waypost tokens revoke <id> [--json] [options]

Works on the data folder, or on the database of DATABASE_URL, whether a server runs on it or not.

  list
      Every token by its id, or those of one project. The tokens themselves are kept nowhere.
  create
      Makes a token and prints it, once.
  revoke <id>
      Ends a token: nobody gets in with it from then on.`,
    options: {
      '--project <name>': 'The project that the token belongs to.',
      '--scope <scope>':
        'full: everything. publish-only: publish, enqueue, batch and trigger. read-only: look at everything but the signing keys.',
      '--name <text>': 'What to call the token in lists, such as who has it.',
      '--json': 'Print JSON.',
    },
    settings: 'store',
    example: 'tokens create --project shop --scope publish-only',
  },
  {
    list: ['Every token by its id.', list],
    create: ['Makes a token and prints it, once.', create],
    revoke: ['Ends a token.', revoke, "the token's id"],
  },
);

async function list(given: Given, terminal: Terminal): Promise<number> {
  const project = given.value('project');
  const request = project === undefined ? {} : { project };
  const entries = await operate(given.settings, terminal, (on) => on.listTokens(request));
  if (given.has('json')) {
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

async function create(given: Given, terminal: Terminal): Promise<number> {
  const request: CreateTokenRequest = {
    project: required(given.value('project'), 'tokens create: --project <name>'),
    scope: scopeOf(required(given.value('scope'), 'tokens create: --scope <scope>')),
  };
  const name = given.value('name');
  if (name !== undefined) request.name = name;
  const { token, ...entry } = await operate(given.settings, terminal, (on) => on.createToken(request));
  if (given.has('json')) {
    printJson(terminal, { ...view(entry), token });
  } else {
    terminal.complain(`The token ${entry.id} is shown only now. Keep it where your app and nobody else reads it:\n\n`);
    terminal.print(`QSTASH_TOKEN=${token}\n`);
  }
  return EXIT.ok;
}

async function revoke(given: Given, terminal: Terminal): Promise<number> {
  const entry = await operate(given.settings, terminal, (on) => on.revokeToken({ id: given.word }));
  if (given.has('json')) printJson(terminal, view(entry));
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
