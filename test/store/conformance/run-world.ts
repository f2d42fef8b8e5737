/** The shared tools of the cases about runs: runs, entries for their journals, and short ways to read their state. */
import type { Accepted } from '../../../src/engine/messages/accepted.ts';
import type { Message, NewEntry, NewMessage, NewRecord, RunEnding } from '../../../src/engine/model.ts';
import type { NewWaiter } from '../../../src/engine/runs/stores.ts';
import type { StoreLimits } from '../../../src/engine/stores.ts';
import type { CallType, RunSettings } from '../../../src/protocol/options/settings.ts';
import type { Run, RunConfig } from '../../../src/workflow/model.ts';
import { bytes, type MessageOptions, PROJECT, T0, type World } from './world.ts';

const WORKFLOW_URL = 'https://app.example/wf';
export const NO_LIMITS: StoreLimits = { queuesMax: 0, parallelismMax: 0, messagesPerDayMax: 0, journalBytesMax: 0 };

export interface RunStartOptions extends MessageOptions {
  id?: string;
  config?: Partial<RunConfig>;
  entry?: Partial<NewEntry>;
}

/** The first message of a run, not saved yet. */
export function newRunMessage(world: World, options: RunStartOptions = {}): NewMessage {
  const { id = 'r', config, entry, settings, key = world.number(), createdAtMs = T0, ...rest } = options;
  const part: RunSettings = { key, id, createdAtMs, url: WORKFLOW_URL, callType: 'step', init: 'known', features: [] };
  const newMessages = world.message({
    key,
    createdAtMs,
    url: WORKFLOW_URL,
    ...rest,
    settings: { run: part, ...settings },
  });
  newMessages.entry = { runKey: key, kind: 'initial', entryKey: '0', bytes: 10, ...entry };
  newMessages.run = { id, url: WORKFLOW_URL, createdAtMs, config: configOf(config) };
  return newMessages;
}

/** Saves the first message of a run and returns it. */
export async function startRun(world: World, options: RunStartOptions = {}): Promise<Message> {
  const newMessages = newRunMessage(world, options);
  const [result] = await world.save([newMessages], newMessages.message.createdAtMs);
  if (result?.kind !== 'accepted') throw new Error(`no run was started: ${result?.kind}`);
  return newMessages.message;
}

export interface EntryOptions extends MessageOptions {
  entry?: Partial<NewEntry>;
  callType?: CallType;
}

/** A message for the journal of the run that started with `first`, not saved yet; default: the result of step 1. */
export function appended(world: World, first: Message, options: EntryOptions = {}): NewMessage {
  const { entry, callType = 'step', settings, ...rest } = options;
  const { init: _init, ...part } = partOf(first);
  const { projectId } = first;
  const newMessages = world.message({
    url: WORKFLOW_URL,
    projectId,
    ...rest,
    settings: { run: { ...part, callType }, ...settings },
  });
  newMessages.entry = { runKey: part.key, kind: 'step', entryKey: 's1', bytes: 20, ...entry };
  return newMessages;
}

/** Appends a message and returns the result. */
export async function append(world: World, first: Message, options: EntryOptions = {}): Promise<Accepted> {
  const [result] = await world.save([appended(world, first, options)], options.createdAtMs ?? T0);
  if (!result) throw new Error('the store returned no result');
  return result;
}

/** The record of an invocation of `child`, for the result of step `stepId`. */
export function invocation(
  world: World,
  parent: Message,
  child: { key: number; id: string; createdAtMs?: number },
  stepId = 1,
): NewRecord {
  const result = { url: WORKFLOW_URL, header: {}, settings: { dialect: 'upstash', maxRetries: 3 } as const };
  const { key: runKey, id: runId, createdAtMs = T0 } = child;
  const invoke = { runKey, runId, url: WORKFLOW_URL, createdAtMs, result };
  const { message } = world.message({
    projectId: parent.projectId,
    body: bytes(`step ${stepId}`),
    settings: { run: partOf(parent), invoke },
  });
  return { message, entry: { runKey: parent.key, kind: 'invoke', entryKey: `i${stepId}`, bytes: 0 } };
}

/** The first message of a run that `parent` invokes, not saved yet. */
export function invoked(world: World, parent: Message, options: RunStartOptions = {}, stepId = 1): NewMessage {
  const newMessages = newRunMessage(world, options);
  if (!newMessages.run) throw new Error('no run begins with it');
  const child = { key: newMessages.message.key, id: newMessages.run.id, createdAtMs: newMessages.run.createdAtMs };
  newMessages.run.invoker = invocation(world, parent, child, stepId);
  return newMessages;
}

/** The wait of step `stepId` for the event `e`, not registered yet. */
export function waiter(world: World, first: Message, stepId = 1): NewWaiter {
  const body = bytes(JSON.stringify({ stepId, stepName: 'w', stepType: 'Wait', concurrent: 1 }));
  const { message } = world.message({ body, settings: { run: partOf(first) } });
  const entry = { runKey: first.key, kind: 'wait', entryKey: `w${stepId}`, bytes: 0 } as const;
  return { record: { message, entry }, eventId: 'e', deadlineMs: T0 + 1_000 };
}

/** The end of the run that started with `first`. */
export function ending(first: { key: number }, options: Partial<RunEnding> = {}): RunEnding {
  return { projectId: PROJECT, runKey: first.key, runVersion: 1, state: 'RUN_SUCCESS', atMs: T0, ...options };
}

export async function activeRun(world: World, id = 'r', projectId = PROJECT): Promise<Run> {
  const run = await world.store.runs.findActiveRun({ projectId, id });
  if (!run) throw new Error(`no run ${id} is active`);
  return run;
}

/** The journal as deliveries show it: call type and body of each entry. */
export async function journalOf(world: World, first: { key: number }): Promise<string[]> {
  const entries = await world.store.runs.readJournal({ projectId: 1, runKey: first.key });
  return entries.map(({ position, callType, body }) =>
    `${position} ${callType} ${new TextDecoder().decode(body)}`.trim(),
  );
}

/** All log events of a run, in order: the state, and the key of its message. */
export async function runLogOf(world: World, id = 'r', projectId = PROJECT): Promise<string[]> {
  const page = { count: 1000, order: 'earliestFirst' } as const;
  const { items } = await world.store.runLogs.listRunEvents({ projectId, filter: { runId: [id] }, page });
  return items.map(({ state, message }) => (message ? `${state} ${message.key}` : state));
}

function partOf({ settings: { run } }: Message): RunSettings {
  if (!run) throw new Error('the message is of no run');
  return run;
}

function configOf(config: Partial<RunConfig> = {}): RunConfig {
  return {
    dialect: 'upstash',
    features: [],
    isKept: true,
    isRest: false,
    isUnknownSdk: false,
    header: {},
    maxRetries: 3,
    ...config,
  };
}
