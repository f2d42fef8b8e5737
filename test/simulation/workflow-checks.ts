/**
 * Checks promises of docs/architecture.md: journals are kept, runs end once, and programs have the results that they
 * define.
 */
import type { Message, MessageId } from '../../src/engine/model.ts';
import type { Attempt } from '../support/simulated-network.ts';
import { checkAttempts } from './checks.ts';
import { type History, historiesOf } from './histories.ts';
import { COPY_KEPT_MS_MAX } from './workflow-client.ts';
import type { Deployments } from './workflow-deployments.ts';
import { calledBody } from './workflow-endpoint.ts';
import { checkInvocations } from './workflow-invoke-checks.ts';
import {
  type DeliveredEntry,
  deliveryOf,
  outcomeOf,
  type payloadOf,
  type RecordedStep,
  readEntries,
  textOf,
} from './workflow-library.ts';
import type { WorkflowNotes } from './workflow-notes.ts';
import { type Program, type Step, stepsOf } from './workflow-programs.ts';
import { checkRevivals, isGivenUp } from './workflow-revival-checks.ts';
import {
  messageLogs,
  ownEntries,
  type RunStory,
  runStories,
  type StoredEntry,
  shownEntries,
} from './workflow-stories.ts';
import { checkWaits, elapsedOf } from './workflow-wait-checks.ts';
import type { World } from './world.ts';

export interface WorkflowEvidence {
  world: World;
  notes: WorkflowNotes;
  deployments: Deployments;
  stories: RunStory[];
  storyByKey: Map<number, RunStory>;
  /** The histories of all messages of runs. */
  histories: Map<MessageId, History>;
  attemptsById: Map<MessageId, Attempt[]>;
}

export async function checkWorkflows(world: World, notes: WorkflowNotes, deployments: Deployments): Promise<void> {
  const stories = await runStories(world);
  const evidence: WorkflowEvidence = {
    world,
    notes,
    deployments,
    stories,
    storyByKey: new Map(stories.map((story) => [story.key, story])),
    histories: historiesOf(await messageLogs(world)),
    attemptsById: Map.groupBy(world.network.attempts, ({ messageId }) => messageId),
  };
  for (const story of stories) {
    checkCounts(evidence, story);
    checkOnce(evidence, story);
    checkEnd(evidence, story);
    checkFailure(evidence, story);
    checkResult(evidence, story);
  }
  checkMessages(evidence);
  checkAttempts(evidence, ({ settings }) => settings.run?.callType === 'step');
  checkParked(evidence);
  checkDelivered(evidence);
  checkHeaders(evidence);
  checkAcknowledged(evidence);
  checkSavedEntries(evidence);
  checkIds(evidence);
  checkWaits(evidence);
  checkInvocations(evidence);
  await checkRevivals(evidence);
  await checkNothingLeft(world);
}

/** P3: the journal, the log and the row of a run agree. */
function checkCounts({ world }: WorkflowEvidence, story: RunStory): void {
  const { entries, entryCount, events, id } = story;
  const isContiguous = entries.every(({ position }, index) => position === index);
  if (!isContiguous || entryCount !== entries.length) {
    world.violate('P3', `run ${id} says ${entryCount} of ${entries.length} entries`);
  }
  const pairs = [
    ['WAITER_ADDED', ownEntries(story, 'wait').length],
    ['INVOKED', ownEntries(story, 'invoke').length],
    ['RUN_STARTED', 1],
  ] as const;
  for (const [state, expected] of pairs) {
    const count = events.filter((event) => event.state === state).length;
    if (count !== expected) world.violate('P3', `run ${id} has ${count} times ${state}, not ${expected}`);
  }
}

/** P8: each plan, call and result of a step is in the journal once, whatever its entry key. */
function checkOnce({ world }: WorkflowEvidence, { id, entries }: RunStory): void {
  for (const [name, same] of Map.groupBy(entries, nameOf)) {
    if (same.length > 1) world.violate('P8', `run ${id} has ${same.length} times ${name}`, same[1]?.message.id);
  }
}

/** Names the event that an entry records. */
function nameOf({ kind, message: { body, settings } }: StoredEntry): string {
  if (kind === 'initial') return kind;
  if (kind === 'fromCallback') return `an answer of ${(JSON.parse(textOf(body)) as CalledMessage).sourceMessageId}`;
  if (kind === 'toCallback') return `a call of step ${settings.callback?.header['Upstash-Workflow-Stepid']?.[0]}`;
  const { stepId, targetStep = 0 } = JSON.parse(textOf(body)) as RecordedStep;
  return stepId === 0 ? `the plan of step ${targetStep}` : `the ${kind} of step ${stepId}`;
}

interface CalledMessage {
  sourceMessageId: MessageId;
}

/** P14: each run ends. P2: it ends once, as requested, and none of its messages is sent afterwards. */
function checkEnd(evidence: WorkflowEvidence, story: RunStory): void {
  const { world, notes } = evidence;
  const { id, state, end, events, entries } = story;
  const ends = events.filter((event) => event.state.startsWith('RUN_') && event.state !== 'RUN_STARTED');
  if (state === 'RUN_STARTED' || !end) return world.violate('P14', `run ${id} never ends`, entries.at(-1)?.message.id);
  if (ends.length > 1 || end.state !== state) {
    world.violate('P2', `run ${id} ends as ${ends.map((each) => each.state)}, and is ${state}`);
  }
  const failureCalls = new Set(
    [...evidence.histories.values()].filter(isFailureCall).map(({ message }) => message.key),
  );
  for (const event of events) {
    const isOpen = event.state === 'CREATED' || event.state === 'ACTIVE';
    if (isOpen && event.seq > end.seq && !failureCalls.has(event.key)) {
      world.violate('P2', `${event.state} after the end of run ${id}`, idOf(story, event.key));
    }
  }
  const kind = state === 'RUN_SUCCESS' ? 'complete' : state === 'RUN_CANCELED' ? 'cancel' : undefined;
  const isAsked = notes.endings.some(
    (ending) =>
      ending.kind === kind && ending.runId === id && (ending.createdAtMs ?? story.createdAtMs) === story.createdAtMs,
  );
  if (kind && !isAsked && !isGivenUp(evidence, story)) {
    world.violate('P2', `run ${id} ended as ${state}, and nobody asked for it`);
  }
}

function isFailureCall({ message }: History): boolean {
  return message.settings.run?.callType === 'failureCall';
}

function idOf({ entries }: RunStory, key: number): MessageId | undefined {
  return entries.find(({ message }) => message.key === key)?.message.id;
}

/** P3: a failed run has exactly one dead message and one failure callback. */
function checkFailure({ world, histories }: WorkflowEvidence, { key, id, state, failureKey }: RunStory): void {
  const messages = [...histories.values()].filter(({ message }) => message.settings.run?.key === key);
  const dead = messages.filter((history) => !isFailureCall(history) && isFatal(history));
  const failureCalls = messages.filter(isFailureCall);
  const expected = state === 'RUN_FAILED' ? 1 : 0;
  if (dead.length !== expected) world.violate('P3', `run ${id} is ${state}, with ${dead.length} messages that failed`);
  if (failureCalls.length !== expected)
    world.violate('P3', `run ${id} is ${state}, and tells of it ${failureCalls.length} times`);
  if (failureCalls[0] && failureCalls[0].message.key !== failureKey)
    world.violate('P3', `run ${id} does not know whom it tells`);
}

/** Whether the failure of the message fails its run. A failed call is a result like any other. */
function isFatal({ message, letters }: History): boolean {
  return letters.endsWith('F') && message.settings.run?.callType !== 'toCallback';
}

/** P8, P17: the result of a run is what its program computes from the journal, as if there had been no failures. */
function checkResult(evidence: WorkflowEvidence, story: RunStory): void {
  const { world, deployments } = evidence;
  const { id, state, response, entries } = story;
  const initial = entries[0];
  if (!initial) return;
  const { program: name } = JSON.parse(textOf(initial.message.body)) as ReturnType<typeof payloadOf>;
  const recordedSteps = entries
    .filter(({ kind }) => kind === 'step' || kind === 'plan')
    .map(({ message }) => JSON.parse(textOf(message.body)) as RecordedStep);
  // If one version of the code returns earlier, the remaining steps were recorded by a concurrent call with the other
  // version.
  const program =
    deployments.versionsOf(name).find((code) => {
      const outcomes = outcomesOf(code, recordedSteps);
      return outcomes.length === stepsOf(code).length && response === JSON.stringify(outcomes);
    }) ?? deployments.fitting(name, recordedSteps)[0];
  if (!program) return world.violate('P17', `run ${id} has steps of different code`, entries.at(-1)?.message.id);
  const outcomes: string[] = [];
  for (const { step, stepId } of stepsOf(program)) {
    const entry = story.entryByKey.get(`s${stepId}`);
    if (!entry) continue;
    const recorded = JSON.parse(textOf(entry.message.body)) as RecordedStep;
    outcomes.push(outcomeOf(recorded));
    const reason = contradiction(step, recorded);
    if (reason) world.violate('P17', `step ${stepId} of run ${id} ${reason}`, entry.message.id);
  }
  if (state !== 'RUN_SUCCESS') return;
  if (outcomes.length !== stepsOf(program).length) world.violate('P17', `run ${id} ended before its last step`);
  if (program.end !== 'returns') world.violate('P17', `run ${id} succeeded, though its program ${program.end}`);
  if (response !== JSON.stringify(outcomes)) {
    world.violate('P8', `run ${id} went on from other results than its journal has`, entries.at(-1)?.message.id);
  }
}

/** The outcomes that the code computes from the recorded steps. */
function outcomesOf(code: Program, recorded: readonly RecordedStep[]): string[] {
  const byId = new Map(recorded.filter(({ stepId }) => stepId > 0).map((step) => [step.stepId, step]));
  return stepsOf(code).flatMap(({ step, stepId }) => {
    const known = byId.get(stepId);
    return known ? outcomeOf(known, step.name) : [];
  });
}

/** Describes how a recorded step differs from the step of the program. Returns `undefined` if they agree. */
function contradiction(step: Step, { stepType, out = '' }: RecordedStep): string | undefined {
  switch (step.kind) {
    case 'run': {
      const { value } = JSON.parse(out) as { value: number };
      return stepType === 'Run' && value === step.value ? undefined : `has ${value}, not ${step.value}`;
    }
    case 'call': {
      const { status, body } = JSON.parse(out) as { status: number; body: string };
      const isFine = step.failures <= (step.failsBy === 'refusal' ? 0 : step.retries);
      const expected = isFine ? 200 : { error: 500, refusal: 489, silence: 504 }[step.failsBy];
      if (status !== expected) return `has status ${status}, not ${expected}`;
      return isFine && body !== textOf(calledBody(step.padding)) ? `has the answer ${body}` : undefined;
    }
    case 'sleep':
      return stepType === 'SleepFor' ? undefined : `is a ${stepType}`;
    case 'notify':
      return stepType === 'Notify' ? undefined : `is a ${stepType}`;
    case 'wait':
      return stepType === 'Wait' ? undefined : `is a ${stepType}`;
    case 'invoke':
      return stepType === 'Invoke' ? undefined : `is a ${stepType}`;
  }
}

/**
 * The states of `checks.ts`, and P parked. Unlike other messages, messages of a run are cancelled without a request when
 * the run ends.
 */
const LEGAL = /^C(A+(ER|P))*(A*Q?X|A+D|A+EF|A+Q?(D|EF|EX|X))$/;

/** P2: each message ends once, and P8: it is in the journal of its run. */
function checkMessages({ world, histories, storyByKey }: WorkflowEvidence): void {
  for (const history of histories.values()) {
    const { message, letters } = history;
    if (!LEGAL.test(letters)) world.violate('P2', `the logs tell of ${letters}`, message.id);
    if (isFailureCall(history)) continue;
    const story = storyByKey.get(message.settings.run?.key ?? 0);
    if (!story?.entries.some((entry) => entry.message.key === message.key)) {
      world.violate('P8', 'a message of a run is not in its journal', message.id);
    }
  }
}

/** P2: a parked message is not attempted before its due time, except on request. */
function checkParked({ world, notes, histories }: WorkflowEvidence): void {
  if (world.jumps.length > 0 || world.isShared) return;
  for (const { message, parkings } of histories.values()) {
    for (const { atMs, dueAtMs, triedAtMs = Infinity } of parkings) {
      const [parkedAtMs, againAtMs] = [elapsedOf(world, atMs), elapsedOf(world, triedAtMs)];
      const isAskedFor = notes.resumes.some(
        ({ startAtMs, respondedAtMs, sent }) =>
          startAtMs <= againAtMs && respondedAtMs + (sent > 1 ? COPY_KEPT_MS_MAX : 0) >= parkedAtMs,
      );
      if (triedAtMs < dueAtMs && !isAskedFor)
        world.violate('P2', 'a parked message was tried again too early', message.id);
    }
  }
}

/** P8: a delivery contains the journal up to the message's own entry, and delivered entries never change. */
function checkDelivered({ world, notes, stories, storyByKey }: WorkflowEvidence): void {
  const shown = new Map(stories.map((story) => [story.key, shownEntries(story)]));
  for (const { claimed, messageId } of world.network.attempts) {
    const { run } = claimed.message.settings;
    if (run?.callType !== 'step' || claimed.deliveredBody === undefined || claimed.deliveredBody.length === 0) continue;
    compareEntries(world, shown.get(run.key) ?? [], readEntries(claimed.deliveredBody), messageId);
  }
  for (const { delivery, entries } of [...notes.fetched, ...notes.handed]) {
    const story = stories.find(({ id, createdAtMs }) => id === delivery.runId && createdAtMs === delivery.createdAtMs);
    compareEntries(world, (story && shown.get(story.key)) ?? [], entries, delivery.messageId);
  }
  for (const { delivery, error } of notes.unreadable) {
    world.violate('P8', `the endpoint could make nothing of what was delivered: ${String(error)}`, delivery.messageId);
  }
  for (const { runId, messageId } of notes.missing) {
    // After the end of the run, its id may name a later run.
    const hasNamesake = [...storyByKey.values()].filter(({ id }) => id === runId).length > 1;
    if (!hasNamesake) world.violate('P8', 'its journal was fetched, and did not have it', messageId);
  }
}

function compareEntries(
  world: World,
  journal: readonly StoredEntry[],
  got: DeliveredEntry[],
  messageId: MessageId,
): void {
  if (got.at(-1)?.messageId !== messageId) {
    world.violate('P8', 'what was delivered does not end in the own entry', messageId);
  }
  for (const [index, entry] of got.entries()) {
    const kept = journal[index];
    const isKept =
      kept?.message.id === entry.messageId && Buffer.from(kept.message.body).toString('base64') === entry.body;
    if (!isKept) return world.violate('P8', `entry ${index} was delivered otherwise than it is kept`, messageId);
  }
}

/** P17: each delivery to the workflow has the trigger's configuration; a call has only the trace of the run. */
function checkHeaders({ world, storyByKey }: WorkflowEvidence): void {
  for (const { claimed, messageId } of world.network.attempts) {
    const { run, trace } = claimed.message.settings;
    const story = storyByKey.get(run?.key ?? 0);
    const initial = story?.entries[0]?.message;
    if (!run || !initial) continue;
    const expectedTrace = initial.settings.trace?.parent;
    if (expectedTrace === undefined || trace?.parent !== expectedTrace) {
      world.violate('P17', `was delivered in the trace ${trace?.parent}, not ${expectedTrace}`, messageId);
    }
    const { headers } = deliveryOf(claimed);
    const isCall = run.callType === 'toCallback';
    if (isCall && (headers.has('x-user') || headers.has('upstash-workflow-runid'))) {
      world.violate('P17', 'a call shows what is its run’s', messageId);
    }
    if (isCall) continue;
    const names = run.callType === 'failureCall' ? ['X-User'] : ['X-User', 'Upstash-Workflow-Invoke-Count'];
    for (const name of names) {
      const expected = headerOf(initial, name);
      const got = headers.get(name.toLowerCase());
      if (got !== expected) world.violate('P17', `was delivered with ${name} ${got}, not ${expected}`, messageId);
    }
  }
}

function headerOf({ header }: Message, name: string): string | undefined {
  return header[name]?.[0];
}

/** P1: acknowledged triggers and ends have taken effect. */
function checkAcknowledged({ world, notes, stories }: WorkflowEvidence): void {
  for (const { runId, createdAtMs, request } of notes.triggers) {
    if (request.result !== 'acked') continue;
    const story = stories.find((each) => each.id === runId && each.createdAtMs === createdAtMs);
    if (!story) world.violate('P1', `run ${runId} was accepted, and is not in the store`);
  }
  for (const { runId, createdAtMs, request } of notes.endings) {
    if (request.result !== 'acked' || createdAtMs === undefined) continue;
    const story = stories.find((each) => each.id === runId && each.createdAtMs === createdAtMs);
    if (story && !story.end) world.violate('P1', `the end of run ${runId} was confirmed, and it goes on`);
    const late = world.starts.find(({ attempt, atMs }) => {
      const { run } = attempt.claimed.message.settings;
      const isOfRun = run?.id === runId && run.createdAtMs === createdAtMs && run.callType !== 'failureCall';
      return isOfRun && atMs > request.respondedAtMs;
    });
    if (late) world.violate('P1', `run ${runId} goes on after its end was confirmed`, late.attempt.messageId);
  }
}

/** P1, P8: the entries that a checkpoint reported as saved are in the journal, unchanged. */
function checkSavedEntries({ world, notes, stories }: WorkflowEvidence): void {
  // The response to an invocation names the first message of the invoked run.
  const startMessageIds = new Set(stories.map(({ entries }) => entries[0]?.message.id));
  for (const { runId, messageId, text } of notes.saved) {
    if (startMessageIds.has(messageId)) continue;
    const ofRun = stories.filter(({ id }) => id === runId);
    const same = ofRun.flatMap(({ entries }) => entries).find(({ message }) => message.id === messageId);
    const slot = text === undefined ? '' : `s${(JSON.parse(text) as RecordedStep).stepId}`;
    const entry = same ?? ofRun.flatMap(({ entryByKey }) => entryByKey.get(slot) ?? [])[0];
    if (!entry) world.violate('P1', `run ${runId} was told that an entry is kept, and it is not`, messageId);
    else if (text !== undefined && textOf(entry.message.body) !== text) {
      world.violate('P8', `run ${runId} went on from another result than is kept`, messageId);
    }
  }
}

/** P2: there are never two active runs with one id. */
function checkIds({ world, stories }: WorkflowEvidence): void {
  const startOf = ({ events }: RunStory) => events.find(({ state }) => state === 'RUN_STARTED')?.seq ?? -1;
  for (const [id, unordered] of Map.groupBy(stories, (story) => story.id)) {
    const namesakes = unordered.toSorted((a, b) => startOf(a) - startOf(b));
    for (const [index, story] of namesakes.entries()) {
      const before = namesakes[index - 1]?.end;
      if (before && startOf(story) < before.seq) world.violate('P2', `two runs of the id ${id} at a time`);
    }
  }
}

/** P2: no message or waiter remains after all runs have ended. */
async function checkNothingLeft(world: World): Promise<void> {
  for (const table of ['waiters', 'pending_events', 'messages']) {
    const count = await world.count(`select count(*) as count from ${table}`);
    if (count > 0) world.violate('P2', `${count} rows are left in ${table}`);
  }
}
