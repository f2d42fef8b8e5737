/** `waypost init`: creates what `waypost serve` needs, and shows the token once. */
import { parseConfig } from '../../config/parse.ts';
import { CommandFailed, EXIT } from '../command.ts';
import { configured } from '../configured.ts';

export const init = configured(
  'init',
  {
    about: `Usage: waypost init [--project <name>] [--add-token] [--read-only] [options]

Makes the data folder, the encryption key, and a project with a token and signing keys, and prints them. The token is
kept as a hash only: it cannot be shown again. No server may be running on the data folder; while one is, "waypost
projects" and "waypost tokens" make more of both.`,
    options: {
      '--project <name>': 'Name of the project, which is also the user id inside its token. [default]',
      '--add-token': 'Make one more token for a project that has one already.',
      '--read-only':
        'Let the token read messages, logs and the DLQ, and neither change anything nor read the signing keys.',
    },
    settings: 'store',
    example: 'init --project shop --data-dir /var/lib/waypost',
  },
  async (given, terminal) => {
    const isReadOnly = given.has('read-only');
    const config = parseConfig(terminal.env, given.settings);
    if (config.memory)
      throw new CommandFailed('init writes to the data folder: it cannot go with --memory', EXIT.usage);
    const { initialise } = await import('../../admin/initialise.ts');
    const { token, signingKeys } = await initialise(config, {
      project: given.value('project') ?? 'default',
      addToken: given.has('add-token'),
      scope: isReadOnly ? 'read-only' : 'full',
    });
    terminal.complain('The token is shown only now. Keep these lines where your app and nobody else reads them:\n\n');
    terminal.print(`QSTASH_TOKEN=${token}\n`);
    // A read-only token does not give access to the signing keys.
    if (!isReadOnly) {
      terminal.print(
        `QSTASH_CURRENT_SIGNING_KEY=${signingKeys.current}\nQSTASH_NEXT_SIGNING_KEY=${signingKeys.next}\n`,
      );
    }
    return EXIT.ok;
  },
);
