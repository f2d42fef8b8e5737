/**
 * Runs the steps of one call. If the journal has the result of a step, the result is read; otherwise the step is executed
 * and its result saved. Steps that start in the same turn of the event loop form a group. The journal has exactly the
 * entries that the official library would write, so that either library can take over a run (contract K 6).
 */
import { type Append, type Call, CallOver, type Handover, type Token } from './call.ts';
import { findChange, findChangeAtReturn } from './code-changes.ts';
import { type CodeChangedError, WorkflowError } from './errors.ts';
import { GroupSaver } from './group-saver.ts';
import type { Journal } from './journal.ts';
import type { RunEnd } from './responses.ts';
import { delayedAppend, type LazyStep, mayArriveWithin, planOf, resultOf } from './steps.ts';
import type { Step } from './types.ts';

/** Observes the steps of a call. */
export interface StepObserver {
  beforeExecution(stepName: string): Promise<void>;
  afterExecution(stepName: string, result: unknown): Promise<void>;
  /** Called at the point at which a call of the official library would end and the next call would start. */
  continued(): Promise<void>;
}

/** Why the call stops in the middle of the workflow. */
type StopReason = CallOver | CodeChangedError;

/** A step of a group whose plan is owned by this call. */
interface PlannedStep {
  step: LazyStep;
  id: number;
  plan: Token;
}

interface Suspension {
  next?: Handover;
  stopReason?: StopReason;
}

/** The steps that were started in one turn of the event loop: a single step, or a group. */
interface Group {
  firstId: number;
  steps: LazyStep[];
  /** Resolves to undefined if another call executes these steps. */
  values: Promise<unknown[] | undefined>;
}

/** A result that the workflow has received, but the server has not saved. */
interface UnsavedResult {
  result: Step;
  timer: ReturnType<typeof setTimeout>;
  /** Resolves to whether the call continues. */
  saving?: Promise<boolean>;
}

export class Execution {
  /**
   * Resolves when the call has no more work although the workflow has not returned: with the next message, or with
   * the reason to stop.
   */
  readonly suspended: Promise<Suspension>;
  readonly #journal: Journal;
  readonly #call: Call;
  readonly #observer: StepObserver;
  #suspend: (why: Suspension) => void = () => {};
  /** How many steps the workflow has reached, which is also the id of the latest step. */
  #count = 0;
  #currentGroup: Group | undefined;
  /** The name of the step whose function is being called. */
  #runningStep: string | undefined;
  /** The first step that threw, and its error. */
  #failed: { stepName: string; error: unknown } | undefined;
  /** The results that the workflow is waiting for. */
  readonly #pending = new Set<Group['values']>();
  #unsaved: UnsavedResult | undefined;
  /** Tokens of messages that are finished as soon as the next entry is saved. */
  #finishedTokens: Token[];
  /** The latest save. The next save waits for it. */
  #saving: Promise<unknown> = Promise.resolve();
  /** A save ended the call: the call lost the run or exceeded its budget. */
  #isOver = false;
  /** Further steps are executed by another call. */
  #isClosed = false;
  /** Set while this call reports its end. The promise never resolves; if it rejects, the workflow continues. */
  #finishing: Promise<never> | undefined;

  constructor(journal: Journal, call: Call, token: Token, observer: StepObserver) {
    this.#journal = journal;
    this.#call = call;
    this.#finishedTokens = [token];
    this.#observer = observer;
    this.suspended = new Promise((resolve) => {
      this.#suspend = resolve;
    });
  }

  /** How many steps the workflow has reached. */
  get count(): number {
    return this.#count;
  }

  /** The error if the workflow has returned before it reached all steps of the journal. */
  get changeAtReturn(): CodeChangedError | undefined {
    return findChangeAtReturn(this.#journal, this.#count);
  }

  /** The name of the step that threw `error`. */
  stepOf(error: unknown): string | undefined {
    return this.#failed?.error === error ? this.#failed?.stepName : undefined;
  }

  /**
   * Returns how the run ends after the workflow has returned, or undefined if another call ends the run. Results of
   * branches that are still running are ignored (contract K 6.11).
   */
  async end(): Promise<RunEnd | undefined> {
    this.#isClosed = true;
    this.#suspend({});
    const lastStep = this.#lastStep();
    if (!lastStep) await this.saved();
    const token = await this.#call.close();
    return token === undefined ? undefined : { token, ...(lastStep && { lastStep }) };
  }

  /** The result to send together with the end of the run. */
  #lastStep(): RunEnd['lastStep'] {
    const unsaved = this.#unsaved;
    if (!unsaved || unsaved.saving !== undefined) return undefined;
    const text = JSON.stringify(unsaved.result);
    const bytes = new TextEncoder().encode(text).length;
    if (bytes > this.#call.lastStepBytesMax) return undefined;
    clearTimeout(unsaved.timer);
    return { text, bytes };
  }

  /**
   * Resolves when no step is running and all results are saved, so that the failure of the workflow can be reported
   * (contract K 6.3). No further step starts. Returns the next message if a branch has already received it.
   */
  async settled(): Promise<Handover | undefined> {
    this.#isClosed = true;
    const settled = Promise.allSettled(this.#pending).then((): Suspension => ({}));
    const { next } = await Promise.race([settled, this.suspended]);
    await this.saved();
    await this.#call.responded();
    return next;
  }

  /** Resolves when all results are saved: to true, or to false if the call must not continue. */
  async saved(): Promise<boolean> {
    const unsaved = this.#unsaved;
    if (!unsaved) return true;
    clearTimeout(unsaved.timer);
    unsaved.saving ??= this.#save(unsaved.result);
    return unsaved.saving;
  }

  /** Returns the step's result. Never settles when another call executes the step. */
  async add<T>(step: LazyStep<T>): Promise<T> {
    if (this.#runningStep !== undefined)
      throw new WorkflowError(`A step cannot run inside another one: '${step.name}' inside '${this.#runningStep}'.`);
    if (this.#failed)
      throw new WorkflowError(`The workflow continued after '${this.#failed.stepName}' had failed. Rethrow its error.`);
    if (this.#isClosed || this.#finishing !== undefined) return never();
    this.#count += 1;
    this.#currentGroup ??= this.#openGroup(this.#count);
    const { steps, values } = this.#currentGroup;
    const index = steps.push(step) - 1;
    const all = await values;
    return all ? (all[index] as T) : never();
  }

  #openGroup(firstId: number): Group {
    const steps: LazyStep[] = [];
    const values = this.#valuesOf(firstId, steps);
    this.#pending.add(values);
    const forget = () => this.#pending.delete(values);
    values.then(forget, forget);
    return { firstId, steps, values };
  }

  async #valuesOf(firstId: number, steps: LazyStep[]): Promise<unknown[] | undefined> {
    // By now the group has all steps of this turn, whether their values are new or come from the journal.
    await Promise.resolve();
    await Promise.resolve();
    this.#currentGroup = undefined;
    try {
      if (!(await this.saved())) return await this.#end();
      const change = findChange(this.#journal, steps, firstId);
      if (change) return await this.#stop(change);
      if (this.#isClosed || this.#isForOtherGroup(firstId, steps)) return undefined;
      const [step] = steps;
      if (step && steps.length === 1) return [await this.#runSingle(step, firstId)];
      return await this.#runGroup(steps, firstId);
    } catch (error) {
      if (error instanceof CallOver) return this.#stop(error);
      throw error;
    }
  }

  /** Whether this delivery is for a single step of another group. */
  #isForOtherGroup(firstId: number, steps: LazyStep[]): boolean {
    const { results, last } = this.#journal;
    if (!last?.targetStep) return false;
    const ids = steps.map((_, index) => firstId + index);
    return !ids.includes(last.targetStep) && !ids.every((id) => results.has(id));
  }

  async #runSingle(step: LazyStep, id: number): Promise<unknown> {
    const known = this.#journal.results.get(id);
    if (known) return this.#read(step, known);
    if (!step.execute) await this.#observer.beforeExecution(step.name);
    if (!step.execute)
      return this.#finishCall(this.#finishedTokens, [requestOf(step, resultOf(step, id, 1))], this.#isSoon([step]));
    const result = await this.#execute(step, id, 1);
    const { lastStepBytesMax, isOverBudget: isLate } = this.#call;
    if (lastStepBytesMax > 0 && this.#pending.size === 1 && !isLate) this.#saveSoon(result);
    else if (!(await this.#save(result))) return this.#end();
    await this.#observer.continued();
    return this.#finished(step, result);
  }

  /**
   * Lets the workflow continue before the result is saved. If the workflow returns, the result is sent together with the
   * end of the run. Otherwise the result is saved before the next step, or by the timer when the workflow does something
   * else.
   */
  #saveSoon(result: Step): void {
    const timer = setTimeout(() => this.saved().catch(() => {}), 0); // the next step reports the error
    this.#unsaved = { result, timer };
  }

  /**
   * Resolves to whether the call continues. Messages that the call still owns when it ends are delivered again. Steps of
   * several branches may finish during a save; each save finishes the message of the save before.
   */
  #save(result: Step): Promise<boolean> {
    const saving = this.#saving.then(() => this.#saveNow(result));
    this.#saving = saving.catch(() => {}); // whoever awaits `saving` gets the error
    return saving;
  }

  async #saveNow(result: Step): Promise<boolean> {
    if (this.#isOver) return false;
    const [entry] = await this.#call.checkpoint(this.#finishedTokens, [{ step: result }]);
    this.#isOver = entry?.token === undefined || this.#call.isOverBudget;
    if (entry?.token !== undefined) this.#finishedTokens = [entry.token];
    return !this.#isOver;
  }

  async #runGroup(steps: LazyStep[], firstId: number): Promise<unknown[]> {
    const { results, plans, last } = this.#journal;
    const ids = steps.map((_, index) => firstId + index);
    if (ids.every((id) => results.has(id))) {
      return Promise.all(steps.map((step, index) => this.#read(step, results.get(firstId + index))));
    }
    const step = last?.targetStep === undefined ? undefined : steps[last.targetStep - firstId];
    if (!ids.some((id) => plans.has(id) || results.has(id))) return this.#startGroup(steps, firstId);
    // The delivery is for one result of an unfinished group. Only the last result continues the run.
    if (!step || !last?.targetStep) {
      return this.#finishCall(
        this.#finishedTokens,
        [],
        this.#isSoon(steps.filter((_, index) => !results.has(firstId + index))),
      );
    }
    return this.#finishCall(this.#finishedTokens, [await this.#appendFor(step, last.targetStep, steps.length)], true);
  }

  /** Plans a group, and executes the steps whose plans this call owns: usually all steps. */
  async #startGroup(steps: LazyStep[], firstId: number): Promise<unknown[]> {
    const size = steps.length;
    const plans = steps.map((step, index) => delayedAppend(planOf(step, firstId + index, size)));
    if (steps.every(({ members }) => members?.sleepFor !== undefined || members?.sleepUntil !== undefined)) {
      return this.#finishCall(this.#finishedTokens, plans, this.#isSoon(steps));
    }
    const planned = await this.#call.checkpoint(this.#finishedTokens, plans);
    // Messages that the call still owns when it ends are delivered again.
    if (this.#call.isOverBudget) return this.#end();
    this.#finishedTokens = [];
    const owned = steps.flatMap((step, index): PlannedStep[] => {
      const plan = planned[index]?.token;
      return plan === undefined ? [] : [{ step, id: firstId + index, plan }];
    });
    if (owned.length < size || steps.some(({ execute }) => !execute)) return this.#executeOwned(owned, steps);
    const saver = new GroupSaver(this.#call);
    const results = await allOf(
      owned.map(async ({ step, id, plan }) => {
        const result = await this.#execute(step, id, size);
        await saver.save(plan, result);
        return result;
      }),
      () => this.#skipDeliveries(saver.tokens),
    );
    this.#finishedTokens = saver.tokens;
    // The delivery of the last result, in another call, finds the group complete.
    if (!saver.ownsLast) return this.#finishCall(this.#finishedTokens, [], true);
    await this.#observer.continued();
    return Promise.all(steps.map((step, index) => this.#finished(step, results[index] as Step)));
  }

  /**
   * Executes or requests the steps of a group whose plans this call owns. Only the journal up to a result shows whether
   * that result completes the group. So the result that is saved last is handed to the call, and the earlier results need
   * no delivery.
   */
  async #executeOwned(owned: PlannedStep[], steps: LazyStep[]): Promise<never> {
    const savedTokens: Token[] = [];
    let left = owned.length;
    let last: { plan: Token; append: Append } | undefined;
    const save = async (plan: Token, append: Append): Promise<void> => {
      const entries = await this.#call.checkpoint([plan], [append]);
      savedTokens.push(...entries.flatMap(({ token }) => token ?? []));
    };
    await allOf(
      owned.map(async ({ step, id, plan }) => {
        const append = await this.#appendFor(step, id, steps.length);
        left -= 1;
        if (left === 0) last = { plan, append };
        else await save(plan, append);
      }),
      async () => {
        if (last) await save(last.plan, last.append);
        await this.#skipDeliveries(savedTokens);
      },
    );
    if (!last) return this.#end();
    const { plan, append } = last;
    return this.#finishCall([plan, ...savedTokens], [append], 'step' in append || this.#isSoon(steps));
  }

  /** Executes one step of a group, or makes the request that leads to its result. */
  async #appendFor(step: LazyStep, id: number, size: number): Promise<Append> {
    if (!step.execute) await this.#observer.beforeExecution(step.name);
    const result = step.execute ? await this.#execute(step, id, size) : resultOf(step, id, size);
    return step.request?.(result) ?? { step: result };
  }

  /** A step of the group failed and will be attempted again, so the results that are saved need no delivery. */
  async #skipDeliveries(tokens: Token[]): Promise<void> {
    if (tokens.length > 0) await this.#call.checkpoint(tokens, []);
  }

  /** Whether the result of one of `steps` may arrive while the call is open. */
  #isSoon(steps: LazyStep[]): boolean {
    return this.#call.lingerMs > 0 && steps.some((step) => mayArriveWithin(step, this.#call.lingerMs));
  }

  /** Ends the work of this call. With `isSoon`, the call stays open for the next message. */
  async #finishCall(done: Token[], append: Append[], isSoon: boolean): Promise<never> {
    this.#finishing = this.#sendFinish(done, append, isSoon);
    try {
      return await this.#finishing;
    } finally {
      this.#finishing = undefined;
    }
  }

  async #sendFinish(done: Token[], append: Append[], isSoon: boolean): Promise<never> {
    if (isSoon && done.length > 0) return this.#end(await this.#call.waitForNext(done, append));
    if (append.length > 0) await this.#call.checkpoint(done, append);
    else await this.#call.finish(done);
    return this.#end();
  }

  async #execute(step: LazyStep, id: number, concurrent: number): Promise<Step> {
    await this.#observer.beforeExecution(step.name);
    try {
      this.#runningStep = step.name;
      const running = step.execute?.();
      this.#runningStep = undefined;
      const out = await running;
      await this.#finishing?.catch(() => {});
      return resultOf(step, id, concurrent, out);
    } catch (error) {
      this.#runningStep = undefined;
      this.#failed ??= { stepName: step.name, error };
      throw error;
    }
  }

  /** Reads the new result as if from the journal, so that the first call and all later calls see the same value. */
  async #finished(step: LazyStep, result: Step): Promise<unknown> {
    const value = step.read(result);
    await this.#observer.afterExecution(step.name, value);
    return value;
  }

  async #read(step: LazyStep, known: Step | undefined): Promise<unknown> {
    if (!known) throw new WorkflowError(`the journal has no result for '${step.name}'`);
    return known === this.#journal.last ? this.#finished(step, known) : step.read(known);
  }

  #end(next?: Handover): Promise<never> {
    this.#suspend(next ? { next } : {});
    return never();
  }

  #stop(over: StopReason): Promise<never> {
    this.#suspend({ stopReason: over });
    return never();
  }
}

function never(): Promise<never> {
  return new Promise(() => {});
}

/** Resolves to all results, or rejects with the first error once nothing is running. */
async function allOf<T>(running: Promise<T>[], onError: () => Promise<void> = async () => {}): Promise<T[]> {
  const outcomes = await Promise.allSettled(running);
  const failed = outcomes.find(({ status }) => status === 'rejected');
  if (failed) {
    const { reason } = failed as PromiseRejectedResult;
    if (!(reason instanceof CallOver)) await onError();
    throw reason;
  }
  return outcomes.map((outcome) => (outcome as PromiseFulfilledResult<T>).value);
}

function requestOf(step: LazyStep, result: Step): Append {
  return step.request?.(result) ?? delayedAppend(result);
}
