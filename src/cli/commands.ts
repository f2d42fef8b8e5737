/** The table of commands: its order is that of the help. */
import type { Entry } from './command.ts';

/** Ask a running server over HTTP, from any machine. */
export const ON_A_SERVER: Readonly<Record<string, Entry>> = {
  status: ['which server answers, to whom, and how it stands', async () => (await import('./verbs/status.ts')).status],
  publish: ['publish a message', async () => (await import('./verbs/publish.ts')).publish],
  enqueue: ['publish a message through a queue', async () => (await import('./verbs/publish.ts')).enqueue],
  batch: ['publish many messages', async () => (await import('./verbs/batch.ts')).batch],
  logs: [
    'what happened to messages; -f follows, with what runs do',
    async () => (await import('./verbs/logs.ts')).logs,
  ],
  explain: [
    'why a message or a run waits, or what became of it',
    async () => (await import('./verbs/explain.ts')).explain,
  ],
  messages: [
    'list what is not finished, show it, cancel it, retry it',
    async () => (await import('./verbs/messages.ts')).messages,
  ],
  dlq: [
    'list what could not be delivered, show it, retry it, delete it',
    async () => (await import('./verbs/dlq.ts')).dlq,
  ],
  trigger: ['start a workflow run', async () => (await import('./verbs/publish.ts')).trigger],
  runs: [
    'look at workflow runs, follow and cancel them, start failed ones again',
    async () => (await import('./verbs/runs.ts')).runs,
  ],
  notify: ['wake the workflow runs that wait for an event', async () => (await import('./verbs/publish.ts')).notify],
  queues: ['list queues, make, pause, resume and delete them', async () => (await import('./verbs/lanes.ts')).queues],
  keys: [
    'list flow-control keys, pause, resume, pin and reset them',
    async () => (await import('./verbs/lanes.ts')).keys,
  ],
  schedules: [
    'list schedules, create, pause, resume and delete them',
    async () => (await import('./verbs/schedules.ts')).schedules,
  ],
  groups: ['list URL groups, change and delete them', async () => (await import('./verbs/groups.ts')).groups],
  'signing-keys': [
    'show the signing keys, rotate them',
    async () => (await import('./operate/signing-keys.ts')).signingKeys,
  ],
  login: [
    'keep an address and a token, so that verbs need neither',
    async () => (await import('./verbs/login.ts')).login,
  ],
  profiles: ['list the servers that are kept', async () => (await import('./verbs/login.ts')).profiles],
  logout: ['forget one of them', async () => (await import('./verbs/login.ts')).logout],
  verify: ['why a receiver refuses a signature', async () => (await import('./verbs/verify.ts')).verify],
};

/** Are the server, or work on its data folder. */
export const OF_A_SERVER: Readonly<Record<string, Entry>> = {
  dev: [
    'start a server for development, with the published development credentials',
    async () => (await import('./run/dev.ts')).dev,
  ],
  serve: [
    'start the server, with credentials of its own ("waypost init" makes them)',
    async () => (await import('./run/serve.ts')).serve,
  ],
  init: [
    'prepare a data folder for "waypost serve": encryption key, project, token, signing keys',
    async () => (await import('./operate/init.ts')).init,
  ],
  projects: [
    'list projects, make one, move one to another cell',
    async () => (await import('./operate/projects.ts')).projects,
  ],
  tokens: [
    'list tokens, make one, revoke one; in a running server it counts at once',
    async () => (await import('./operate/tokens.ts')).tokens,
  ],
  cells: [
    'list the databases among which projects are divided; add, drain and balance them',
    async () => (await import('./operate/cells.ts')).cells,
  ],
  doctor: [
    'check that a store is sound, while its server runs or not',
    async () => (await import('./operate/doctor.ts')).doctor,
  ],
  backup: [
    'write all of a store into one file, while its servers run',
    async () => (await import('./operate/backup.ts')).backup,
  ],
  restore: ['make a store of a backup', async () => (await import('./operate/restore.ts')).restore],
  'migrate-store': [
    'move a stopped store into another database, such as PostgreSQL',
    async () => (await import('./operate/migrate-store.ts')).migrateStore,
  ],
  config: [
    'print the settings that are in force, without the secrets',
    async () => (await import('./config.ts')).config,
  ],
  demo: [
    'watch a few messages and workflow runs live their lives, then end',
    async () => (await import('./demo.ts')).demo,
  ],
  completion: [
    'print what makes a shell complete commands, verbs and options',
    async () => (await import('./completion.ts')).completionOf(COMMANDS),
  ],
  version: ['print the version', async () => (await import('./version.ts')).version],
};

export const COMMANDS: Readonly<Record<string, Entry>> = { ...OF_A_SERVER, ...ON_A_SERVER };
