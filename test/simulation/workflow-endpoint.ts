/**
 * Simulates the endpoints at which programs run. They crash in the middle, respond late or never, continue twice when they are
 * called twice for a message, and execute a step again with a different result. For each delivery they act as one of two
 * libraries: one publishes a step and is called again, the other continues within the call.
 */
import type { HeaderMap } from '../../src/protocol/options/settings.ts';
import { END_STEP_BYTES_MAX } from '../../src/protocol/workflow/checkpoints.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import type { Attempt, Endpoint, Reply } from '../support/simulated-network.ts';
import { CallLost, EndpointCall, EndpointCrashed, type OwnedMessage } from './workflow-call.ts';
import {
  type BatchItem,
  type NewEntry,
  type NewStep,
  NoResponse,
  RunIsOver,
  type WorkflowClient,
} from './workflow-client.ts';
import { type Deployments, fits } from './workflow-deployments.ts';
import {
  callHeaders,
  contextOf,
  isOlderGeneration,
  type RunContext,
  stepHeaders,
  triggerHeaders,
} from './workflow-headers.ts';
import {
  type DeliveredEntry,
  type Delivery,
  deliveryOf,
  isRepeated,
  nextOf,
  payloadOf,
  type RecordedStep,
  readEntries,
  readSteps,
  textOf,
} from './workflow-library.ts';
import type { WorkflowNotes } from './workflow-notes.ts';
import type { CallFailure, Program, Step } from './workflow-programs.ts';
import type { World } from './world.ts';

export const CALLED_ORIGIN = 'https://called.example';

/** How the endpoint treats one delivery. */
type Treatment = 'fine' | 'lost' | 'unanswered' | 'failing' | 'resetting' | 'slow';
type Weights = Readonly<Record<Treatment, number>>;

/** How an endpoint behaves until its mood changes. */
const FINE: Weights = { fine: 1, lost: 0, unanswered: 0, failing: 0, resetting: 0, slow: 0 };
const MOODS: Readonly<Record<string, Weights>> = {
  fine: FINE,
  shaky: { fine: 20, lost: 1, unanswered: 2, failing: 4, resetting: 2, slow: 2 },
  bad: { fine: 6, lost: 1, unanswered: 2, failing: 4, resetting: 2, slow: 2 },
};

/** Thrown when a step throws. With `isFinal` the run fails; otherwise only this execution fails. */
class StepThrew extends Error {
  readonly isFinal: boolean;

  constructor(isFinal: boolean) {
    super('simulated');
    this.isFinal = isFinal;
  }
}

/** Thrown when the code no longer fits the journal of the run. */
class CodeChanged extends Error {}

/** A step that is to be executed. */
interface Task {
  step: Step;
  stepId: number;
  concurrent: number;
}

export interface EndpointDeps {
  world: World;
  random: SeededRandom;
  client: WorkflowClient;
  deployments: Deployments;
  notes: WorkflowNotes;
  /** Whether the endpoint omits the check that its code fits the journal of a run. */
  isUnchecked: boolean;
}

export class WorkflowEndpoint {
  readonly #deps: EndpointDeps;
  readonly #random: SeededRandom;
  #mood = FINE;
  /** How often each step of each run was executed. */
  readonly #executions = new Map<string, number>();

  constructor(deps: EndpointDeps) {
    this.#deps = deps;
    this.#random = deps.random.fork();
  }

  readonly respond: Endpoint = (attempt) => this.#respond(attempt);

  /** Returns the name of the mood. */
  changeMood(mood = this.#random.choose(Object.keys(MOODS))): string {
    this.#mood = MOODS[mood] ?? FINE;
    return mood;
  }

  async #respond(attempt: Readonly<Attempt>): Promise<Reply> {
    const { clock } = this.#deps.world;
    const random = this.#random;
    const fate = random.weighted(this.#mood);
    const afterMs = random.int(1, 100);
    if (fate === 'lost') return { kind: 'silence' };
    if (fate === 'slow') await clock.delay(random.int(2_000, 90_000));
    const reply = await this.#serve(attempt, afterMs);
    if (fate === 'unanswered') return { kind: 'silence' };
    if (fate === 'resetting') return { kind: 'reset', afterMs };
    if (fate === 'failing') return responseOf(random.choose([500, 502, 429]), afterMs);
    return reply;
  }

  async #serve(attempt: Readonly<Attempt>, afterMs: number): Promise<Reply> {
    const delivery = deliveryOf(attempt.claimed);
    const { world, client, notes } = this.#deps;
    const call = this.#random.chance(0.5) ? new EndpointCall({ world, client, notes }, attempt, delivery) : undefined;
    try {
      if (delivery.headers.has('upstash-workflow-failure-callback')) notes.noteFailureCall(delivery);
      else await this.#handleAll(delivery, call);
      return call?.result ? call.endingWith(call.result, responseOf(200, afterMs)) : responseOf(200, afterMs);
    } catch (error) {
      if (error instanceof CallLost) return responseOf(500, afterMs);
      if (error instanceof EndpointCrashed) return { kind: 'reset', afterMs };
      // `RunIsOver`: no work is left. `NoResponse`: no work is possible now.
      if (error instanceof RunIsOver) return responseOf(200, afterMs);
      if (error instanceof NoResponse) return responseOf(500, afterMs);
      // The library that is called again for each step cannot report changed code: it responds with a failure.
      if (error instanceof CodeChanged) return call ? changedCodeResponse(afterMs) : responseOf(500, afterMs);
      if (!(error instanceof StepThrew)) this.#deps.notes.noteUnreadable(delivery, error);
      if (!(error instanceof StepThrew) || !error.isFinal) return responseOf(500, afterMs);
      const reply = responseOf(489, afterMs);
      return { ...reply, header: { ...reply.header, 'Upstash-Nonretryable-Error': ['true'] } };
    }
  }

  /** Handles the delivered message, and all messages that are handed to the call after it. */
  async #handleAll(first: Delivery, call: EndpointCall | undefined): Promise<void> {
    for (let delivery: Delivery | undefined = first; delivery; ) delivery = await this.#handle(delivery, call);
  }

  /** Handles one delivery. Resolves to the message that is handed to the call next. */
  async #handle(delivery: Delivery, call: EndpointCall | undefined): Promise<Delivery | undefined> {
    try {
      if (delivery.headers.has('upstash-workflow-callback')) return await this.#saveCallResult(delivery, call);
      return await this.#continueRun(delivery, call);
    } catch (error) {
      const isReported = error instanceof StepThrew && call && call.owned.length > 0 && this.#random.chance(0.6);
      if (!isReported) throw error;
      const header: HeaderMap = error.isFinal ? { 'Upstash-Nonretryable-Error': ['true'] } : {};
      return call.fail(error.isFinal ? 489 : 500, header, this.#lingerMs());
    }
  }

  #lingerMs(): number {
    return this.#random.int(0, 10_000);
  }

  /** Keeps the call open for the next message, or crashes while it is open. */
  async #waitForNext(call: EndpointCall, append: readonly NewEntry[]): Promise<Delivery | undefined> {
    const staying = call.waitForNext(append, this.#lingerMs());
    if (this.#mood === FINE || !this.#random.chance(0.05)) return staying;
    staying.catch(() => {});
    await this.#deps.world.clock.delay(this.#random.int(0, 5_000));
    throw new EndpointCrashed();
  }

  /** Saves the response to a call as the result of its step. */
  async #saveCallResult(delivery: Delivery, call: EndpointCall | undefined): Promise<Delivery | undefined> {
    const { client, notes } = this.#deps;
    let text = textOf(delivery.body);
    if (delivery.body.length === 0) {
      const fetched = await client.readJournal(delivery.runId);
      if (!fetched) return undefined;
      const own = fetched.find(({ messageId }) => messageId === delivery.messageId);
      if (!own) {
        notes.noteMissing(delivery);
        return undefined;
      }
      text = textOf(own.body);
    }
    const { status, body, retried = 0, maxRetries } = JSON.parse(text) as Record<string, unknown>;
    if (Number(status) >= 300 && maxRetries !== 0 && retried !== maxRetries) return undefined;
    const stepId = Number(delivery.headers.get('upstash-workflow-stepid'));
    const concurrent = Number(delivery.headers.get('upstash-workflow-concurrent'));
    const out = JSON.stringify({ status, body: Buffer.from(String(body), 'base64').toString('utf8') });
    const stepName = delivery.headers.get('upstash-workflow-stepname') ?? '';
    const result = stepOf({ stepId, stepName, stepType: 'Call', concurrent, out });
    // The delivery does not contain the journal: with either library, the run continues with the next delivery.
    if (call && this.#random.chance(0.5)) return this.#waitForNext(call, [result]);
    if (call) await call.append(call.owned, [result]);
    else await this.#publish(contextOf(delivery), result);
    return undefined;
  }

  /** Continues the run with the delivered message. Resolves to the message that is handed to the call next. */
  async #continueRun(delivery: Delivery, call: EndpointCall | undefined): Promise<Delivery | undefined> {
    const entries = await this.#entriesOf(delivery);
    if (!entries) return undefined;
    call?.keepJournal(entries);
    const steps = readSteps(entries);
    if (isRepeated(steps)) return undefined;
    const context = contextOf(delivery);
    const { deployments, isUnchecked } = this.#deps;
    const program = deployments.codeFor(payloadOf(entries).program, steps);
    if (!isUnchecked && !fits(program, steps)) throw new CodeChanged();
    // Within a call, the program continues while the call owns a message. Otherwise the endpoint is called again. Other
    // calls may have added entries, too.
    let isExact = true;
    for (let continues = true; continues; ) {
      const next = nextOf(program, steps);
      switch (next.kind) {
        case 'execute': {
          const appended = await this.#execute(context, next);
          if (call && isLastStep(program, steps, appended) && this.#random.chance(0.6)) {
            call.lastStep = appended.text;
            steps.push(JSON.parse(appended.text) as RecordedStep);
            continue;
          }
          if (call && this.#random.chance(0.4)) return this.#waitForNext(call, [appended]);
          isExact = false;
          continues = call !== undefined && (await this.#appendStep(call, call.owned, appended, steps));
          if (!call) await this.#publish(context, appended);
          break;
        }
        case 'plan':
          if (call && this.#random.chance(0.2)) {
            return this.#waitForNext(
              call,
              next.steps.map(({ step, stepId }) => this.#planOf(step, stepId, next.steps.length)),
            );
          }
          isExact = false;
          continues = call !== undefined && (await this.#planWithin(call, context, next.steps, steps));
          if (!call) await this.#plan(context, next.steps);
          break;
        case 'nothing':
          return call && isExact && this.#random.chance(0.5) ? this.#waitForNext(call, []) : undefined;
        case 'end':
          await this.#end(context, program, next.outcomes, call);
          return undefined;
      }
      // The call's time is over: the messages that it owns are delivered again.
      if (continues && this.#random.chance(0.05)) return undefined;
    }
    return undefined;
  }

  /** Appends within the call. Resolves to whether the call continues. */
  async #appendStep(
    call: EndpointCall,
    done: readonly OwnedMessage[],
    appended: NewEntry,
    steps: RecordedStep[],
  ): Promise<boolean> {
    if (this.#mood !== FINE && this.#random.chance(0.03)) throw new EndpointCrashed();
    const [entry] = await call.append(done, [appended]);
    if (!entry?.owned || appended.kind !== 'step') return false;
    steps.push(JSON.parse(appended.text) as RecordedStep);
    return true;
  }

  /** Executes the steps of a group in random order. Resolves to whether the call owns all of their results. */
  async #planWithin(
    call: EndpointCall,
    context: RunContext,
    group: { step: Step; stepId: number }[],
    steps: RecordedStep[],
  ): Promise<boolean> {
    const plans = group.map(({ step, stepId }) => this.#planOf(step, stepId, group.length));
    const planned = await call.append(call.owned, plans);
    if (planned.some(({ owned }) => !owned)) return false;
    for (const plan of plans) if (plan.kind === 'step') steps.push(JSON.parse(plan.text) as RecordedStep);
    let areOwned = true;
    const offset = this.#random.int(0, group.length - 1);
    for (const at of group.keys()) {
      const index = (at + offset) % group.length;
      const [task, plan] = [group[index], planned[index]?.owned];
      if (!task || !plan) continue;
      const appended = await this.#execute(context, { ...task, concurrent: group.length });
      if (!(await this.#appendStep(call, [plan], appended, steps))) areOwned = false;
    }
    return areOwned;
  }

  /**
   * The delivered journal, or the fetched journal if it was too large for a delivery; `undefined` if the run has ended.
   */
  async #entriesOf({ body, runId, messageId, ...rest }: Delivery): Promise<DeliveredEntry[] | undefined> {
    const { client, notes } = this.#deps;
    if (body.length > 0) return readEntries(body);
    const fetched = await client.readJournal(runId);
    if (!fetched) return undefined;
    const at = fetched.findIndex((entry) => entry.messageId === messageId);
    const delivery = { body, runId, messageId, ...rest };
    if (at < 0) {
      notes.noteMissing(delivery);
      return undefined;
    }
    const entries = fetched.slice(0, at + 1).map((entry) => ({
      messageId: entry.messageId,
      callType: entry.callType,
      body: Buffer.from(entry.body).toString('base64'),
    }));
    notes.noteFetched(delivery, entries);
    return entries;
  }

  async #end(context: RunContext, program: Program, outcomes: string[], call: EndpointCall | undefined): Promise<void> {
    const { client, notes } = this.#deps;
    const { runId, createdAtMs } = context;
    switch (program.end) {
      case 'fails':
        throw new StepThrew(this.#random.chance(0.7));
      case 'cancels itself':
        await client.cancel(runId, createdAtMs, notes.ending('cancel', runId, client.request(), createdAtMs));
        return;
      case 'returns': {
        const request = notes.ending('complete', runId, client.request(), createdAtMs);
        if (call) {
          call.result = JSON.stringify(outcomes);
          return;
        }
        return client.complete(runId, JSON.stringify(outcomes), createdAtMs, request);
      }
    }
  }

  async #plan(context: RunContext, steps: { step: Step; stepId: number }[]): Promise<void> {
    const items = steps.map(({ step, stepId }) => itemOf(context, this.#planOf(step, stepId, steps.length)));
    await this.#deps.client.batch(items);
  }

  #planOf(step: Step, stepId: number, concurrent: number): NewStep {
    const text = JSON.stringify({ stepId: 0, stepName: step.name, concurrent, targetStep: stepId });
    return { kind: 'step', text, ...(step.kind === 'sleep' && { time: this.#timeOf(step) }) };
  }

  /** Executes a step and returns its entry for the journal. */
  async #execute(context: RunContext, task: Task): Promise<NewEntry> {
    const { step, stepId, concurrent } = task;
    switch (step.kind) {
      case 'run':
        return this.#run(context, task, step);
      case 'sleep': {
        const slept = stepOf({ stepId, stepName: step.name, stepType: 'SleepFor', concurrent });
        return concurrent === 1 ? { ...slept, time: this.#timeOf(step) } : slept;
      }
      case 'call': {
        const headers = callHeaders(context, { step, stepId, concurrent });
        const { ref, failures, failsBy, padding } = step;
        const destination = `${CALLED_ORIGIN}/?failures=${failures}&by=${failsBy}&padding=${padding}`;
        return { kind: 'call', item: { destination, headers, body: `call ${ref}` } };
      }
      case 'wait':
        return this.#wait(context, task, step);
      case 'notify':
        return this.#notify(context, task, step);
      case 'invoke':
        return this.#invoke(context, task, step);
    }
  }

  async #run(
    context: RunContext,
    { stepId, concurrent }: Task,
    step: Extract<Step, { kind: 'run' }>,
  ): Promise<NewEntry> {
    const { world } = this.#deps;
    const name = `${context.runId} ${context.createdAtMs} ${stepId}`;
    const times = (this.#executions.get(name) ?? 0) + 1;
    this.#executions.set(name, times);
    await world.clock.delay(this.#random.int(0, 30));
    if (times <= step.throws) throw new StepThrew(step.isFinal);
    // Each execution has a different result, and only one of the results counts.
    const out = JSON.stringify({
      value: step.value,
      nonce: this.#random.int(1, 1e9),
      padding: '.'.repeat(step.padding),
    });
    return stepOf({ stepId, stepName: step.name, stepType: 'Run', concurrent, out });
  }

  #wait(context: RunContext, { stepId, concurrent }: Task, step: Extract<Step, { kind: 'wait' }>): NewEntry {
    const { client, notes } = this.#deps;
    const { eventId, timeoutS } = step;
    const request = notes.wait({ ...context, stepId, eventId }, client.request());
    const recorded = { stepId, stepName: step.name, stepType: 'Wait', concurrent };
    return { kind: 'wait', eventId, timeoutS, step: recorded, request };
  }

  async #notify(context: RunContext, task: Task, step: Extract<Step, { kind: 'notify' }>): Promise<NewEntry> {
    const { client, notes } = this.#deps;
    const { stepId, concurrent } = task;
    const { eventId, isToSelf } = step;
    const notification = notes.notify(eventId, isToSelf ? context : undefined, client.request());
    const { event, request } = notification;
    if (isToSelf) {
      const notified = await client.notifyRun(context.runId, eventId, event, request);
      notification.isSaved = notified?.runCreatedAtMs === context.createdAtMs && notified.waiter === undefined;
    } else {
      await client.notify(eventId, event, request);
    }
    return stepOf({ stepId, stepName: step.name, stepType: 'Notify', concurrent, out: event });
  }

  #invoke(context: RunContext, task: Task, step: Extract<Step, { kind: 'invoke' }>): NewEntry {
    const { stepId, concurrent } = task;
    // A repeated invocation uses another id.
    const sharedId = isOlderGeneration(context.url) ? undefined : step.sharedId;
    const runId = sharedId ?? `child-${this.#random.int(1, 1e9)}`;
    const child = { ...context, runId, invokeCount: context.invokeCount + 1 };
    const attempts = { 'upstash-retries': '4', 'upstash-retry-delay': '1000', 'upstash-workflow-invoke': 'true' };
    const lines = Object.entries(stepHeaders(context)).map(([name, value]) => [name, [value]]);
    const body = {
      body: JSON.stringify({ program: step.program.name }),
      headers: Object.fromEntries(lines),
      workflowRunId: context.runId,
      workflowRunCreatedAt: context.createdAtMs,
      workflowUrl: context.url,
      step: { stepId, stepName: step.name, stepType: 'Invoke', concurrent },
    };
    const headers = triggerHeaders(child, attempts);
    return { kind: 'invoke', item: { destination: context.url, headers, body: JSON.stringify(body) } };
  }

  async #publish(context: RunContext, appended: NewEntry): Promise<void> {
    const { client } = this.#deps;
    if (appended.kind !== 'wait') {
      await client.batch([itemOf(context, appended)]);
      return;
    }
    const { eventId, timeoutS, step, request } = appended;
    const headers = stepHeaders(context);
    const timeoutHeaders = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
    const body = { url: context.url, timeout: `${timeoutS}s`, timeoutUrl: context.url, timeoutHeaders, step };
    await client.wait(eventId, headers, body, request);
  }

  #timeOf({ seconds, isUntil }: Extract<Step, { kind: 'sleep' }>): NonNullable<NewStep['time']> {
    if (!isUntil) return { delayS: seconds };
    return { notBeforeS: Math.ceil(this.#deps.world.clock.wallMs() / 1_000) + seconds };
  }
}

/** Whether the program returns after this step, so that the step can be sent together with the result of the run. */
function isLastStep(program: Program, steps: RecordedStep[], appended: NewEntry): appended is NewStep {
  if (appended.kind !== 'step' || appended.time || program.end !== 'returns') return false;
  if (Buffer.byteLength(appended.text) > END_STEP_BYTES_MAX) return false;
  const last = JSON.parse(appended.text) as RecordedStep;
  return last.concurrent === 1 && nextOf(program, [...steps, last]).kind === 'end';
}

function itemOf(context: RunContext, appended: Exclude<NewEntry, { kind: 'wait' }>): BatchItem {
  if (appended.kind !== 'step') return appended.item;
  const { delayS, notBeforeS } = appended.time ?? {};
  const headers = {
    ...stepHeaders(context),
    ...(delayS !== undefined && { 'upstash-delay': `${delayS}s` }),
    ...(notBeforeS !== undefined && { 'upstash-not-before': String(notBeforeS) }),
  };
  return { destination: context.url, headers, body: appended.text };
}

function stepOf(step: Omit<RecordedStep, 'targetStep'>): NewStep {
  return { kind: 'step', text: JSON.stringify(step) };
}

/** A response of a library, which names its protocol version. */
function responseOf(status: number, afterMs: number): Extract<Reply, { kind: 'answer' }> {
  return { kind: 'answer', status, afterMs, header: { 'Upstash-Workflow-Sdk-Version': ['1'] } };
}

function changedCodeResponse(afterMs: number): Reply {
  const body = Buffer.from('{"message":"The code has changed."}');
  const { header, ...reply } = responseOf(409, afterMs);
  return { ...reply, body, header: { ...header, 'Upstash-Workflow-Code-Changed': ['true'] } };
}

/** The endpoint of `call` steps: its response depends on the URL and on the number of retries. */
export const respondToCall: Endpoint = ({ url, retried }) => {
  const query = new URL(url).searchParams;
  if (retried >= Number(query.get('failures'))) {
    return { kind: 'answer', status: 200, afterMs: 20, body: calledBody(Number(query.get('padding'))) };
  }
  const failsBy = query.get('by') as CallFailure;
  if (failsBy === 'silence') return { kind: 'silence' };
  const body = Buffer.from('not now');
  if (failsBy === 'error') return { kind: 'answer', status: 500, afterMs: 20, body };
  return { kind: 'answer', status: 489, afterMs: 20, body, header: { 'Upstash-Nonretryable-Error': ['true'] } };
};

export function calledBody(padding: number): Uint8Array {
  return Buffer.from(`fine${'.'.repeat(padding)}`);
}
