/** The command line: finds the command, runs it, turns what it throws into one line and an exit code. */
import { CannotStart } from '../cannot-start.ts';
import { ConfigError } from '../config/parse.ts';
import { type Command, CommandFailed, EXIT, type Terminal } from './command.ts';
import { readVersion } from './version.ts';

/** Loaded when asked for: `waypost --help` need not load a server. */
const COMMANDS: Record<string, () => Promise<Command>> = {
  dev: async () => (await import('./dev.ts')).dev,
  serve: async () => (await import('./serve.ts')).serve,
  init: async () => (await import('./init.ts')).init,
  projects: async () => (await import('./projects.ts')).projects,
  tokens: async () => (await import('./tokens.ts')).tokens,
  runs: async () => (await import('./runs.ts')).runs,
  doctor: async () => (await import('./doctor.ts')).doctor,
  backup: async () => (await import('./backup.ts')).backup,
  restore: async () => (await import('./restore.ts')).restore,
  'migrate-store': async () => (await import('./migrate-store.ts')).migrateStore,
  config: async () => (await import('./config.ts')).config,
  demo: async () => (await import('./demo.ts')).demo,
  version: async () => (await import('./version.ts')).version,
};

const HELP_WORDS = new Set(['--help', '-h', 'help']);

/** `args`: what follows the program's name. Resolves to the exit code, whatever happens; `terminal` is told the reason. */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await run(args, terminal);
  } catch (error) {
    return explain(error, terminal);
  }
}

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || HELP_WORDS.has(name)) {
    terminal.print(await overview());
    return name === undefined ? EXIT.usage : EXIT.ok;
  }
  const load = COMMANDS[name === '--version' || name === '-v' ? 'version' : name];
  if (load === undefined) throw new CommandFailed(`there is no command "${name}"; see waypost --help`, EXIT.usage);
  const command = await load();
  if (rest.some((arg) => arg === '--help' || arg === '-h')) {
    terminal.print(command.help());
    return EXIT.ok;
  }
  return command.run(rest, terminal);
}

async function overview(): Promise<string> {
  const lines = [`waypost ${readVersion()}`, '', 'Usage: waypost <command> [options]', '', 'Commands:'];
  for (const [name, load] of Object.entries(COMMANDS)) lines.push(`  ${name.padEnd(13)} ${(await load()).summary}`);
  return `${lines.join('\n')}\n\n"waypost <command> --help" says more about each.\n`;
}

/** One line a problem on standard error. What nobody expected is shown in full: it is a defect of ours. */
function explain(error: unknown, terminal: Terminal): number {
  if (error instanceof ConfigError) {
    for (const problem of error.problems) terminal.complain(`waypost: ${problem}\n`);
    return EXIT.usage;
  }
  if (error instanceof CommandFailed) {
    terminal.complain(`waypost: ${error.message}\n`);
    return error.exitCode;
  }
  if (error instanceof CannotStart) {
    terminal.complain(`waypost: ${error.message}\n`);
    return EXIT.failed;
  }
  terminal.complain(`waypost: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return EXIT.fatal;
}
