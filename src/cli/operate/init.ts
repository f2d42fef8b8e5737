/** `waypost init`: prepares a store for `waypost serve`, and shows the token once. */
import { parseConfig } from '../../config/parse.ts';
import { CommandFailed, EXIT } from '../command.ts';
import { commandWithSettings } from '../command-with-settings.ts';

export const init = commandWithSettings(
  'init',
  {
    about: `Usage: waypost init [--project <name>] [--add-token] [--read-only] [options]

Creates the data folder, the encryption key, and a project with a token and signing keys, and prints them. Only a hash of
the token is stored, so it cannot be shown again. No server may be running on the data folder; while one is running, use
"waypost projects" and "waypost tokens".`,
    options: {
      '--project <name>': 'Name of the project, which is also the user id inside its token. [default]',
      '--add-token': 'Create another token for a project that already has one.',
      '--read-only': 'The token can read messages, logs and the DLQ, but not change anything or read the signing keys.',
    },
    settings: 'store',
    example: 'init --project shop --data-dir /var/lib/waypost',
  },
  async (parsed, terminal) => {
    const isReadOnly = parsed.has('read-only');
    const config = parseConfig(terminal.env, parsed.settings);
    if (config.memory)
      throw new CommandFailed('init writes to the data folder, so it cannot be combined with --memory', EXIT.usage);
    const { initialise } = await import('../../admin/initialise.ts');
    const { token, signingKeys } = await initialise(config, {
      project: parsed.value('project') ?? 'default',
      addToken: parsed.has('add-token'),
      scope: isReadOnly ? 'read-only' : 'full',
    });
    terminal.printError('The token is shown only once. Store these lines where only your app can read them:\n\n');
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
