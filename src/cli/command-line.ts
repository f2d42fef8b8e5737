/** The command line: finds the command, runs it, and turns an error into one line and an exit code. */
import { nearest } from '../config/nearest.ts';
import { ConfigError } from '../config/parse.ts';
import { flagOf } from '../config/setting.ts';
import { listSettings } from '../config/table.ts';
import { StoreUnavailable } from '../engine/store-errors.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { readVersion } from '../system/version.ts';
import { type Command, CommandFailed, EXIT, nextStep, type Terminal } from './command.ts';

/** One line for the list of commands, and the command. Loaded on demand, so that no help loads a server. */
type Entry = readonly [summary: string, load: () => Promise<Command>];

/** Ask a running server over HTTP, from any machine. */
const ON_A_SERVER: Readonly<Record<string, Entry>> = {
  status: ['which server answers, to whom, and how it stands', async () => (await import('./status.ts')).status],
  publish: ['publish a message', async () => (await import('./publish.ts')).publish],
  enqueue: ['publish a message through a queue', async () => (await import('./publish.ts')).enqueue],
  batch: ['publish many messages', async () => (await import('./publish.ts')).batch],
  logs: ['what happened to messages and runs; -f follows', async () => (await import('./logs.ts')).logs],
  explain: ['why a message or a run waits, or what became of it', async () => (await import('./explain.ts')).explain],
  messages: ['list what is not finished, show it, cancel it', async () => (await import('./messages.ts')).messages],
  dlq: ['list what could not be delivered, show it, retry it, delete it', async () => (await import('./dlq.ts')).dlq],
  trigger: ['start a workflow run', async () => (await import('./publish.ts')).trigger],
  runs: ['look at workflow runs, cancel them, start failed ones again', async () => (await import('./runs.ts')).runs],
  notify: ['wake the workflow runs that wait for an event', async () => (await import('./publish.ts')).notify],
  queues: ['list queues, make, pause, resume and delete them', async () => (await import('./lanes.ts')).queues],
  keys: ['list flow-control keys, pause, resume, pin and reset them', async () => (await import('./lanes.ts')).keys],
  schedules: [
    'list schedules, create, pause, resume and delete them',
    async () => (await import('./schedules.ts')).schedules,
  ],
  groups: ['list URL groups, change and delete them', async () => (await import('./groups.ts')).groups],
  'signing-keys': ['show the signing keys, rotate them', async () => (await import('./signing-keys.ts')).signingKeys],
  verify: ['why a receiver refuses a signature', async () => (await import('./verify.ts')).verify],
};

/** Are the server, or work on its data folder. */
const OF_A_SERVER: Readonly<Record<string, Entry>> = {
  dev: [
    'start a server for development, with the published development credentials',
    async () => (await import('./dev.ts')).dev,
  ],
  serve: [
    'start the server, with credentials of its own ("waypost init" makes them)',
    async () => (await import('./serve.ts')).serve,
  ],
  init: [
    'prepare a data folder for "waypost serve": encryption key, project, token, signing keys',
    async () => (await import('./init.ts')).init,
  ],
  projects: [
    'list projects, make one; a running server knows it at once',
    async () => (await import('./projects.ts')).projects,
  ],
  tokens: [
    'list tokens, make one, revoke one; in a running server it counts at once',
    async () => (await import('./tokens.ts')).tokens,
  ],
  doctor: [
    'check that a store is sound, while its server runs or not',
    async () => (await import('./doctor.ts')).doctor,
  ],
  backup: [
    'write all of a store into one file, while its servers run',
    async () => (await import('./backup.ts')).backup,
  ],
  restore: ['make a store of a backup', async () => (await import('./restore.ts')).restore],
  'migrate-store': [
    'move a stopped store into another database, such as PostgreSQL',
    async () => (await import('./migrate-store.ts')).migrateStore,
  ],
  config: [
    'print the settings that are in force, without the secrets',
    async () => (await import('./config.ts')).config,
  ],
  demo: [
    'watch a few messages and workflow runs live their lives, then end',
    async () => (await import('./demo.ts')).demo,
  ],
  version: ['print the version', async () => (await import('./version.ts')).version],
};

const COMMANDS: Readonly<Record<string, Entry>> = { ...OF_A_SERVER, ...ON_A_SERVER };

const HELP_WORDS = new Set(['--help', '-h', 'help']);

/**
 * `args`: the arguments after the program's name. Always resolves to an exit code; errors are printed to `terminal`.
 */
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
  const entry = COMMANDS[name === '--version' || name === '-v' ? 'version' : name];
  if (entry === undefined) {
    const hint = nextStep(nearest(name, Object.keys(COMMANDS)), 'waypost --help');
    throw new CommandFailed(`there is no command "${name}"; ${hint}`, EXIT.usage);
  }
  const command = await entry[1]();
  if (rest.some((arg) => arg === '--help' || arg === '-h')) {
    terminal.print(command.help(rest));
    return EXIT.ok;
  }
  if (command.hasSettings !== false) refuseUnknownOptions(rest, command);
  return command.run(rest, terminal);
}

/**
 * Runs before the command takes out its own options. A mistyped option is named first, since it explains a missing one.
 * Throws `ConfigError`. The help names each option of only this command, in its first lines or on a line of its own.
 */
function refuseUnknownOptions(args: readonly string[], command: Command): void {
  const own = [...command.help([]).matchAll(/(?:^ {2}|[[ ])--([a-z-]+)/gm)].flatMap(([, name = '']) => name);
  const settings = listSettings().flatMap(({ name, setting }) => {
    const option = flagOf(name).slice(2);
    return setting.type === 'boolean' ? [option, `no-${option}`] : [option];
  });
  const known = new Set([...own, ...settings]);
  const problems = args.flatMap((arg) => {
    const option = /^--([^=]+)/.exec(arg)?.[1];
    if (option === undefined || known.has(option)) return [];
    const meant = nearest(option, known);
    return `--${option}: there is no such option${meant === undefined ? '' : `; did you mean --${meant}?`}`;
  });
  if (problems.length > 0) throw new ConfigError(problems);
}

function overview(): string {
  const listed = (commands: Readonly<Record<string, Entry>>) =>
    Object.entries(commands).map(([name, [summary]]) => `  ${name.padEnd(13)} ${summary}`);
  const lines = [
    ...[`waypost ${readVersion()}`, '', 'Usage: waypost <command> [options]'],
    ...['', 'The server and its data:', ...listed(OF_A_SERVER)],
    ...['', 'What a running server does, over HTTP (QSTASH_URL, QSTASH_TOKEN):', ...listed(ON_A_SERVER)],
    ...['', '"waypost <command> --help" says more about each.'],
  ];
  return `${lines.join('\n')}\n`;
}

/**
 * Prints one line for each problem on standard error. An unexpected error is a defect of ours, and is shown in full.
 */
function explain(error: unknown, terminal: Terminal): number {
  if (error instanceof ConfigError) {
    for (const problem of error.problems) terminal.complain(`waypost: ${problem}\n`);
    return EXIT.usage;
  }
  if (error instanceof CommandFailed) {
    terminal.complain(`waypost: ${error.message}\n`);
    return error.exitCode;
  }
  // A full disk or an unreachable database: the operator can repair these too.
  if (error instanceof CannotStart || error instanceof StoreUnavailable) {
    terminal.complain(`waypost: ${error.message}\n`);
    return EXIT.failed;
  }
  terminal.complain(`waypost: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return EXIT.fatal;
}
