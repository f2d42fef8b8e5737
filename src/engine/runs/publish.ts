/**
 * Makes and saves publishes. Reads the workflow runs to which the publishes belong, and retries when one of these runs
 * has changed.
 */

import { quotaExceeded, runOver } from '../../protocol/errors.ts';
import type { RunRequest } from '../../protocol/options/settings.ts';
import { FIRST_VERSION, type Run } from '../../workflow/model.ts';
import type { EngineContext } from '../context.ts';
import { changesTooOften, ROUNDS_MAX } from '../loops/retry-while-stale.ts';
import {
  type AcceptContext,
  acceptContextOf,
  type Draft,
  draftOf,
  slowDeduplicationHashOf,
} from '../messages/accept.ts';
import type { Accepted } from '../messages/accepted.ts';
import { FROM_CLIENT, savedOf } from '../messages/intake.ts';
import type { Admitted, PublishCommand } from '../messages/publish-command.ts';
import type { Message, NewMessage, ProjectId } from '../model.ts';
import { AccountsChanged, StoreUnavailable } from '../store-errors.ts';
import { type ActiveRuns, wasCreatedAt } from './active-runs.ts';
import { draftOfAdoption, draftOfAppend, draftOfStart } from './drafts.ts';
import type { JournalBodies } from './journal-bodies.ts';

/** A publish fails with 503 if the accounts change this many times before the publish is saved. */
const READMISSIONS_MAX = 5;

/** The drafts of one round of a publish, and the cached runs on which these drafts rely. */
interface DraftedPublish {
  drafts: Draft[];
  /** Runs that were taken from the cache and may be outdated. */
  cachedRuns: Run[];
}

/** Returns for each command the message that was saved. Throws as `Engine.publish` does. */
export async function publishAll(
  engine: EngineContext,
  projectId: ProjectId,
  commands: PublishCommand[],
  admitted?: Admitted,
): Promise<{ drafts: Draft[]; accepted: Accepted[]; context: AcceptContext }> {
  const { store, active, dispatcher } = engine;
  let accountsVersion = admitted?.accountsVersion;
  let readmissions = 0;
  let runsCreatedAfterMs = 0;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const context = { ...acceptContextOf(engine, projectId), runsCreatedAfterMs };
    const drafted = draftAll(engine, commands, context);
    const { drafts, cachedRuns } = drafted instanceof Promise ? await drafted : drafted;
    const save = (messages: NewMessage[]) =>
      store.messages.accept({ messages, nowMs: context.nowMs, accountsVersion }).then((saved) => {
        noteSaved(engine, messages, saved); // before messages are sent: the first delivery may need the journal
        return saved;
      });
    try {
      const accepted = await dispatcher.intake.save(drafts, save, savedOf, FROM_CLIENT);
      const refusal = accepted.find(isRefusal);
      if (!refusal) return { drafts, accepted, context };
      if (refusal.kind === 'journalFull') throw quotaExceeded('maxJournalSize', refusal.limit);
      if (refusal.kind === 'tooManyInvokers') throw quotaExceeded('maxInvokers', refusal.limit);
      if (refusal.kind === 'runTooEarly') runsCreatedAfterMs = Math.max(runsCreatedAfterMs, refusal.latestMs);
      // All runs were read from the store and none from the cache, so one of these runs has really ended.
      if (refusal.kind === 'runOver' && cachedRuns.length === 0) throw runOver();
      for (const run of cachedRuns) active.forget(projectId, run.id);
    } catch (error) {
      if (!admitted || !(error instanceof AccountsChanged)) throw error;
      accountsVersion = await admitted.readmit();
      readmissions += 1;
      if (readmissions === READMISSIONS_MAX)
        throw new StoreUnavailable('tokens or signing keys change too often, try again shortly');
    }
  }
  throw changesTooOften('the workflow run');
}

function noteSaved(
  { active, bodies }: EngineContext,
  newMessages: readonly NewMessage[],
  saved: readonly Accepted[],
): void {
  for (const [index, entry] of newMessages.entries()) {
    noteEntry(bodies, entry, saved[index]);
    noteRun(active, entry, saved[index]);
  }
}

function draftAll(
  engine: EngineContext,
  commands: PublishCommand[],
  context: AcceptContext,
): DraftedPublish | Promise<DraftedPublish> {
  // If a command belongs to a run, each command gets a second key, for the record of an invocation in the parent's journal.
  const keysPerCommand = commands.some(({ options }) => options.run) ? 2 : 1;
  const firstKey = engine.numbers.take(keysPerCommand * commands.length);
  const [command] = commands;
  const isPlain = commands.length === 1 && command && !command.options.run && !command.options.deduplication;
  // Most publishes are plain, and a key is available without a round trip: then no promise is needed.
  if (isPlain && typeof firstKey === 'number') {
    return { drafts: [draftOf(command, firstKey, context)], cachedRuns: [] };
  }
  return draftInSlices(engine, commands, firstKey, context);
}

async function draftInSlices(
  engine: EngineContext,
  commands: PublishCommand[],
  reservedKey: number | Promise<number>,
  context: AcceptContext,
): Promise<DraftedPublish> {
  const firstKey = await reservedKey;
  const slices = engine.dispatcher.intake.slices();
  const drafted: DraftedPublish = { drafts: [], cachedRuns: [] };
  for (const [index, command] of commands.entries()) {
    const keys = { key: firstKey + index, recordKey: firstKey + commands.length + index };
    const { run } = command.options;
    const slowHash = run ? undefined : slowDeduplicationHashOf(command, slices);
    const draft = run
      ? await draftOfRun(engine.active, command, run, keys, context, drafted.cachedRuns)
      : draftOf(command, keys.key, context, slowHash && (await slowHash));
    drafted.drafts.push(draft);
    if (slices.isOver) await slices.next();
  }
  return drafted;
}

async function draftOfRun(
  active: ActiveRuns,
  command: PublishCommand,
  request: RunRequest,
  keys: { key: number; recordKey: number },
  context: AcceptContext,
  cachedRuns: Run[],
): Promise<Draft> {
  if (request.kind === 'append') {
    const run = await runOf(active, context.projectId, request, cachedRuns);
    return draftOfAppend(command, request, run, keys.key, context);
  }
  if (request.isBySdk && request.runId !== undefined) {
    const run = await active.read(context.projectId, request.runId);
    if (!run) throw runOver();
    // If the run has already continued, this publish is handled like every repeated trigger.
    if (run.config.isUnknownSdk) return draftOfAdoption(command, request, run, keys.key, context);
  }
  const { invocation } = command;
  const parent = invocation && (await runOf(active, context.projectId, invocation, cachedRuns));
  return draftOfStart(command, request, parent, keys, context);
}

/**
 * The active run with this id. Throws `ApiError` 400 if no such run is active, or if the run was created at another time.
 */
async function runOf(
  active: ActiveRuns,
  projectId: ProjectId,
  { runId, createdAtMs }: { runId: string; createdAtMs?: number },
  cachedRuns: Run[],
): Promise<Run> {
  const lookup = await active.find(projectId, runId);
  if (lookup.run && !lookup.isFresh && wasCreatedAt(lookup.run, createdAtMs)) {
    cachedRuns.push(lookup.run);
    return lookup.run;
  }
  const run = lookup.isFresh ? lookup.run : await active.read(projectId, runId);
  if (!run || !wasCreatedAt(run, createdAtMs)) throw runOver();
  return run;
}

const REFUSALS = ['runChanged', 'runOver', 'runTooEarly', 'journalFull', 'tooManyInvokers'] as const;

type Refusal = Extract<Accepted, { kind: (typeof REFUSALS)[number] }>;

function isRefusal(accepted: Accepted): accepted is Refusal {
  return REFUSALS.some((kind) => kind === accepted.kind);
}

/** Caches a new run, because its first step follows soon and would otherwise read the run from the store. */
function noteRun(active: ActiveRuns, { message, run }: NewMessage, accepted: Accepted | undefined): void {
  if (!run || accepted?.kind !== 'accepted') return;
  if (isDelayed(message)) return active.forget(message.projectId, run.id);
  const { id, url, createdAtMs, config, isBySdk, invoker } = run;
  if (isBySdk) return active.forget(message.projectId, id);
  const started: Run = {
    key: message.key,
    projectId: message.projectId,
    id,
    url,
    createdAtMs,
    state: 'RUN_STARTED',
    version: FIRST_VERSION,
    config,
    entries: 1,
    messageId: message.id,
    invokers: invoker ? [invoker.message.key] : [],
  };
  if (message.callerIp !== undefined) started.callerIp = message.callerIp;
  active.note(started);
}

function noteEntry(bodies: JournalBodies, { message, entry, run }: NewMessage, accepted: Accepted | undefined): void {
  const runSettings = message.settings.run;
  if (!entry || !runSettings || accepted?.kind !== 'accepted' || !accepted.journal) return;
  // The first message of this run has replaced another message, so cached bodies are outdated.
  if (run?.isBySdk) bodies.forget(entry.runKey);
  if (runSettings.init === 'unknown' || isDelayed(message)) return;
  const { position } = accepted.journal;
  bodies.note(entry.runKey, { position, messageId: message.id, callType: runSettings.callType, body: message.body });
}

/**
 * Whether the message is delayed. If so, its entry is not cached, because it would evict entries that are needed sooner.
 */
function isDelayed({ notBeforeMs, createdAtMs }: Message): boolean {
  return notBeforeMs > createdAtMs;
}
