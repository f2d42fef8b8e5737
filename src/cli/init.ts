/** `waypost init`: creates what `waypost serve` needs, and shows the token once. */
import { storeSettingsHelp } from '../config/page.ts';
import { parseConfig } from '../config/parse.ts';
import { type Command, CommandFailed, EXIT, takeSwitch, takeValue } from './command.ts';

export const init: Command = {
  help: () =>
    `Usage: waypost init [--project <name>] [--add-token] [--read-only] [options]

Makes the data folder, the encryption key, and a project with a token and signing keys, and prints them. The token is
kept as a hash only: it cannot be shown again. No server may be running on the data folder; while one is, "waypost
projects" and "waypost tokens" make more of both.

  --project <name>
      Name of the project, which is also the user id inside its token. [default]
  --add-token
      Make one more token for a project that has one already.
  --read-only
      Let the token read messages, logs and the DLQ, and neither change anything nor read the signing keys.
${storeSettingsHelp()}
Example: waypost init --project shop --data-dir /var/lib/waypost
`,
  async run(args, terminal) {
    const { given: addToken, rest: afterAdd } = takeSwitch(args, '--add-token');
    const { given: isReadOnly, rest } = takeSwitch(afterAdd, '--read-only');
    const { value: project = 'default', rest: settings } = takeValue(rest, '--project');
    const config = parseConfig(terminal.env, settings);
    if (config.memory)
      throw new CommandFailed('init writes to the data folder: it cannot go with --memory', EXIT.usage);
    const { initialise } = await import('../operations/initialise.ts');
    const { token, signingKeys } = await initialise(config, {
      project,
      addToken,
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
};
