/** Finds the command of a command line, runs it, and turns errors into one line and an exit code. */
import { nearest } from '../config/nearest.ts';
import { ConfigError } from '../config/parse.ts';
import { StoreUnavailable } from '../engine/store-errors.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { readVersion } from '../system/version.ts';
import { type CommandEntry, CommandFailed, EXIT, entryOf, type Terminal, usageHint } from './command.ts';
import { COMMANDS, LOCAL_COMMANDS, REMOTE_COMMANDS } from './commands.ts';

const HELP_WORDS = new Set(['--help', '-h', 'help']);

/** `args`: the arguments after the program's name. Always resolves to an exit code; errors are printed to `terminal`. */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await run(args, terminal);
  } catch (error) {
    return explain(error, terminal);
  }
}

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const [name, ...rest] = args[0] === 'help' ? [...args.slice(1), '--help'] : args;
  if (name === undefined || HELP_WORDS.has(name)) {
    terminal.print(overview());
    return name === undefined ? EXIT.usage : EXIT.ok;
  }
  const entry = entryOf(COMMANDS, name === '--version' || name === '-v' ? 'version' : name);
  if (entry === undefined) {
    const hint = usageHint(nearest(name, Object.keys(COMMANDS)), 'waypost --help');
    throw new CommandFailed(`there is no command "${name}"; ${hint}`, EXIT.usage);
  }
  const command = await entry[1]();
  if (rest.some((arg) => arg === '--help' || arg === '-h')) {
    terminal.print(command.help(rest));
    return EXIT.ok;
  }
  return command.run(rest, terminal);
}

function overview(): string {
  const listed = (commands: Readonly<Record<string, CommandEntry>>) =>
    Object.entries(commands).map(([name, [summary]]) => `  ${name.padEnd(13)} ${summary}`);
  const lines = [
    ...[`waypost ${readVersion()}`, '', 'Usage: waypost <command> [options]'],
    ...['', 'The server and its data:', ...listed(LOCAL_COMMANDS)],
    ...[
      '',
      'Requests to a running server over HTTP (QSTASH_URL and QSTASH_TOKEN, or "waypost login"):',
      ...listed(REMOTE_COMMANDS),
    ],
    ...[
      '',
      '"waypost <command> --help" describes a command. Exit codes: 0 success, 1 refused or failed, 2 invalid command line,',
    ],
    '3 not found, 4 server unavailable, 5 not allowed, 6 cancelled while waiting, 70 fatal error: restart the server.',
  ];
  return `${lines.join('\n')}\n`;
}

/** Prints one line for each problem on standard error. An unexpected error is a bug, and is printed with its stack. */
function explain(error: unknown, terminal: Terminal): number {
  if (error instanceof ConfigError) {
    for (const problem of error.problems) terminal.printError(`waypost: ${problem}\n`);
    return EXIT.usage;
  }
  if (error instanceof CommandFailed) {
    terminal.printError(`waypost: ${error.message}\n`);
    return error.exitCode;
  }
  // The operator can fix the cause, such as a full disk or an unreachable database.
  if (error instanceof CannotStart || error instanceof StoreUnavailable) {
    terminal.printError(`waypost: ${error.message}\n`);
    return EXIT.failed;
  }
  terminal.printError(`waypost: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return EXIT.fatal;
}
