/** The table of commands, in the order of the help. */
import type { CommandEntry } from './command.ts';

/** Commands that send requests to a running server over HTTP, from any machine. */
export const REMOTE_COMMANDS: Readonly<Record<string, CommandEntry>> = {
  status: ['show the server, its project and its counts', async () => (await import('./verbs/status.ts')).status],
  publish: ['publish a message', async () => (await import('./verbs/publish.ts')).publish],
  enqueue: ['publish a message through a queue', async () => (await import('./verbs/publish.ts')).enqueue],
  batch: ['publish many messages', async () => (await import('./verbs/batch.ts')).batch],
  logs: [
    'show the log of messages; -f follows it, with that of runs',
    async () => (await import('./verbs/logs.ts')).logs,
  ],
  explain: [
    'say why a message or a run waits, or how it ended',
    async () => (await import('./verbs/explain.ts')).explain,
  ],
  messages: [
    'list, show, cancel and retry unfinished messages',
    async () => (await import('./verbs/messages.ts')).messages,
  ],
  replay: ['publish a message again, with or without changes', async () => (await import('./verbs/replay.ts')).replay],
  dlq: ['list, show, retry and delete dead messages', async () => (await import('./verbs/dlq.ts')).dlq],
  trigger: ['start a workflow run', async () => (await import('./verbs/publish.ts')).trigger],
  runs: [
    'list, follow and cancel workflow runs; resume or restart failed ones',
    async () => (await import('./verbs/runs.ts')).runs,
  ],
  notify: ['notify the workflow runs that wait for an event', async () => (await import('./verbs/publish.ts')).notify],
  queues: ['list, create, pause, resume and delete queues', async () => (await import('./verbs/lanes.ts')).queues],
  keys: ['list, pause, resume, pin and reset flow-control keys', async () => (await import('./verbs/lanes.ts')).keys],
  schedules: [
    'list, create, pause, resume and delete schedules',
    async () => (await import('./verbs/schedules.ts')).schedules,
  ],
  groups: ['list, change and delete URL groups', async () => (await import('./verbs/groups.ts')).groups],
  'signing-keys': [
    'show and rotate the signing keys',
    async () => (await import('./operate/signing-keys.ts')).signingKeys,
  ],
  login: ['save the address and token of a server as a profile', async () => (await import('./verbs/login.ts')).login],
  profiles: ['list the saved profiles', async () => (await import('./verbs/login.ts')).profiles],
  logout: ['delete a profile', async () => (await import('./verbs/login.ts')).logout],
  verify: ['check the signature of a delivery', async () => (await import('./verbs/verify.ts')).verify],
};

/** Commands that run a server or work on its store. */
export const LOCAL_COMMANDS: Readonly<Record<string, CommandEntry>> = {
  dev: [
    'start a server for development, with the published development credentials',
    async () => (await import('./run/dev.ts')).dev,
  ],
  serve: [
    'start the server for production, with the credentials of "waypost init"',
    async () => (await import('./run/serve.ts')).serve,
  ],
  init: [
    'prepare a data folder for "waypost serve": encryption key, project, token, signing keys',
    async () => (await import('./operate/init.ts')).init,
  ],
  projects: ['list, create and move projects', async () => (await import('./operate/projects.ts')).projects],
  tokens: [
    'list, create and revoke tokens, with immediate effect on a running server',
    async () => (await import('./operate/tokens.ts')).tokens,
  ],
  cells: [
    'list, add, drain and balance the databases of an installation',
    async () => (await import('./operate/cells.ts')).cells,
  ],
  doctor: [
    'check the consistency of a store, whether its server is running or not',
    async () => (await import('./operate/doctor.ts')).doctor,
  ],
  backup: [
    'write a store into one file, while its servers run',
    async () => (await import('./operate/backup.ts')).backup,
  ],
  restore: ['restore a store from a backup', async () => (await import('./operate/restore.ts')).restore],
  'migrate-store': [
    'copy a stopped store into another database, such as PostgreSQL',
    async () => (await import('./operate/migrate-store.ts')).migrateStore,
  ],
  config: ['print the current settings, without secrets', async () => (await import('./config.ts')).config],
  demo: ['show the life of a few messages and workflow runs', async () => (await import('./demo.ts')).demo],
  completion: [
    'print a completion script for a shell',
    async () => (await import('./completion.ts')).completionOf(COMMANDS),
  ],
  version: ['print the version', async () => (await import('./version.ts')).version],
};

export const COMMANDS: Readonly<Record<string, CommandEntry>> = { ...LOCAL_COMMANDS, ...REMOTE_COMMANDS };
