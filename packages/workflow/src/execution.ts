/**
 * Steps of one call: those that the journal has are read from it, the others are executed and kept, and the workflow goes
 * on. Steps that are begun in the same turn of the event loop are a group. The journal gets what the official library
 * would have left in it, so that either may take over (contract K 6).
 */
import type { End } from './answers.ts';
import { type Append, type Call, CallOver, type Handover, type Token } from './call.ts';
import { changeAtReturn, changeOf } from './code-changes.ts';
import { type CodeChangedError, WorkflowError } from './errors.ts';
import type { Journal } from './journal.ts';
import { Keeper } from './keeper.ts';
import { asleep, type LazyStep, mayComeWithin, planOf, resultOf } from './steps.ts';
import type { Step } from './types.ts';

/** What is told of steps as they run. */
export interface Watcher {
  beforeExecution(stepName: string): Promise<void>;
  afterExecution(stepName: string, result: unknown): Promise<void>;
  /** A call of the official library would end here, and the next begin. */
  continued(): Promise<void>;
}

/** Why a call ends in the middle of the workflow, which is not asked whether it agrees. */
type Over = CallOver | CodeChangedError;

/** A step of a group whose plan this call holds. */
interface Planned {
  step: LazyStep;
  id: number;
  plan: Token;
}

interface Suspended {
  next?: Handover;
  over?: Over;
}

/** Steps that were begun in one turn; alone, or together. */
interface Group {
  firstId: number;
  steps: LazyStep[];
  /** `undefined`: another call brings them. */
  values: Promise<unknown[] | undefined>;
}

/** A result that the workflow has, and the server not yet. */
interface Unsaved {
  result: Step;
  timer: ReturnType<typeof setTimeout>;
  /** Answers whether the call goes on. */
  saving?: Promise<boolean>;
}

export class Execution {
  /**
   * Resolves when nothing is left to do, although the workflow has not returned: with what the call goes on with, or why it
   * must not.
   */
  readonly suspended: Promise<Suspended>;
  readonly #journal: Journal;
  readonly #call: Call;
  readonly #watcher: Watcher;
  #suspend: (why: Suspended) => void = () => {};
  /** Steps that the workflow has come to, and so the id of the latest. */
  #count = 0;
  #open: Group | undefined;
  /** The step whose function is being called. */
  #inside: string | undefined;
  /** The step that threw, and what. */
  #failed: { stepName: string; error: unknown } | undefined;
  /** The values that the workflow waits for. */
  readonly #underWay = new Set<Group['values']>();
  #unsaved: Unsaved | undefined;
  /** What the call holds and has no more to do for, once something follows. */
  #held: Token[];
  /** The latest result that is being saved. */
  #saving: Promise<unknown> = Promise.resolve();
  /** A result was saved with which the call does not go on. */
  #isSpent = false;
  /** Whatever the workflow begins now is left to the next who runs it. */
  #isClosed = false;
  /** That nothing more is done here is being told to the server. Settles only if that fails: then the workflow goes on. */
  #leaving: Promise<never> | undefined;

  constructor(journal: Journal, call: Call, token: Token, watcher: Watcher) {
    this.#journal = journal;
    this.#call = call;
    this.#held = [token];
    this.#watcher = watcher;
    this.suspended = new Promise((resolve) => {
      this.#suspend = resolve;
    });
  }

  /** How many steps the workflow has come to. */
  get count(): number {
    return this.#count;
  }

  /** What has changed in the code, if the workflow has returned before it came to all steps of the journal. */
  get changeAtReturn(): CodeChangedError | undefined {
    return changeAtReturn(this.#journal, this.#count);
  }

  /** The name of the step that has thrown `error`. */
  stepOf(error: unknown): string | undefined {
    return this.#failed?.error === error ? this.#failed?.stepName : undefined;
  }

  /**
   * What the run ends with, now that the workflow has returned. `undefined`: another call ends it. What other branches still do
   * comes to nothing (contract K 6.11).
   */
  async end(): Promise<End | undefined> {
    this.#isClosed = true;
    this.#suspend({});
    const lastStep = this.#lastStep();
    if (!lastStep) await this.saved();
    const token = await this.#call.close();
    return token === undefined ? undefined : { token, ...(lastStep && { lastStep }) };
  }

  /** The result that may come with the end of the run. */
  #lastStep(): End['lastStep'] {
    const unsaved = this.#unsaved;
    if (!unsaved || unsaved.saving !== undefined) return undefined;
    const text = JSON.stringify(unsaved.result);
    const bytes = new TextEncoder().encode(text).length;
    if (bytes > this.#call.lastStepBytesMax) return undefined;
    clearTimeout(unsaved.timer);
    return { text, bytes };
  }

  /**
   * Resolves when no step is under way any more and all results are saved, so that the failure of the workflow may be told
   * (contract K 6.3). No other step begins. Answers what the call goes on with instead, if a branch has left it for that.
   */
  async settled(): Promise<Handover | undefined> {
    this.#isClosed = true;
    const settled = Promise.allSettled(this.#underWay).then((): Suspended => ({}));
    const { next } = await Promise.race([settled, this.suspended]);
    await this.saved();
    await this.#call.answered();
    return next;
  }

  /** Resolves when all results that the workflow has are saved; to false if the call does not go on. */
  async saved(): Promise<boolean> {
    const unsaved = this.#unsaved;
    if (!unsaved) return true;
    clearTimeout(unsaved.timer);
    unsaved.saving ??= this.#save(unsaved.result);
    return unsaved.saving;
  }

  /** The step's result. Never settles when this call is not the one that brings it. */
  async add<T>(step: LazyStep<T>): Promise<T> {
    if (this.#inside !== undefined)
      throw new WorkflowError(`A step cannot run inside another one: '${step.name}' inside '${this.#inside}'.`);
    if (this.#failed)
      throw new WorkflowError(`The workflow went on after '${this.#failed.stepName}' had failed. Let its error out.`);
    if (this.#isClosed || this.#leaving !== undefined) return never();
    this.#count += 1;
    this.#open ??= this.#openGroup(this.#count);
    const { steps, values } = this.#open;
    const index = steps.push(step) - 1;
    const all = await values;
    return all ? (all[index] as T) : never();
  }

  #openGroup(firstId: number): Group {
    const steps: LazyStep[] = [];
    const values = this.#valuesOf(firstId, steps);
    this.#underWay.add(values);
    const forget = () => this.#underWay.delete(values);
    values.then(forget, forget);
    return { firstId, steps, values };
  }

  async #valuesOf(firstId: number, steps: LazyStep[]): Promise<unknown[] | undefined> {
    // All that is begun in this turn is in the group by then, in a call that goes on as in one that reads the journal.
    await Promise.resolve();
    await Promise.resolve();
    this.#open = undefined;
    try {
      if (!(await this.saved())) return await this.#end();
      const change = changeOf(this.#journal, steps, firstId);
      if (change) return await this.#stop(change);
      if (this.#isClosed || this.#isForAnother(firstId, steps)) return undefined;
      const [step] = steps;
      if (step && steps.length === 1) return [await this.#single(step, firstId)];
      return await this.#group(steps, firstId);
    } catch (error) {
      if (error instanceof CallOver) return this.#stop(error);
      throw error;
    }
  }

  /** Whether the call is for one step alone, of another group. */
  #isForAnother(firstId: number, steps: LazyStep[]): boolean {
    const { results, last } = this.#journal;
    if (!last?.targetStep) return false;
    const ids = steps.map((_, index) => firstId + index);
    return !ids.includes(last.targetStep) && !ids.every((id) => results.has(id));
  }

  async #single(step: LazyStep, id: number): Promise<unknown> {
    const known = this.#journal.results.get(id);
    if (known) return this.#read(step, known);
    if (!step.execute) await this.#watcher.beforeExecution(step.name);
    if (!step.execute) return this.#leave(this.#held, [requestOf(step, resultOf(step, id, 1))], this.#isSoon([step]));
    const result = await this.#execute(step, id, 1);
    const { lastStepBytesMax, isLate } = this.#call;
    if (lastStepBytesMax > 0 && this.#underWay.size === 1 && !isLate) this.#saveSoon(result);
    else if (!(await this.#save(result))) return this.#end();
    await this.#watcher.continued();
    return this.#finished(step, result);
  }

  /**
   * The workflow goes on with the result at once. If it returns, the result comes with the end of the run. Else it is saved
   * before the next step, and soon, when the workflow does something else.
   */
  #saveSoon(result: Step): void {
    const timer = setTimeout(() => this.saved().catch(() => {}), 0); // told when the workflow comes to the next step
    this.#unsaved = { result, timer };
  }

  /**
   * Answers whether the call goes on. What it still holds when it ends is delivered on its own. Steps of several branches may end
   * while one of them is being saved: the next is `done` with what that leaves held.
   */
  #save(result: Step): Promise<boolean> {
    const saving = this.#saving.then(() => this.#saveNow(result));
    this.#saving = saving.catch(() => {}); // told to whoever waits for it
    return saving;
  }

  async #saveNow(result: Step): Promise<boolean> {
    if (this.#isSpent) return false;
    const [entry] = await this.#call.checkpoint(this.#held, [{ step: result }]);
    this.#isSpent = entry?.token === undefined || this.#call.isLate;
    if (entry?.token !== undefined) this.#held = [entry.token];
    return !this.#isSpent;
  }

  async #group(steps: LazyStep[], firstId: number): Promise<unknown[]> {
    const { results, plans, last } = this.#journal;
    const ids = steps.map((_, index) => firstId + index);
    if (ids.every((id) => results.has(id))) {
      return Promise.all(steps.map((step, index) => this.#read(step, results.get(firstId + index))));
    }
    const step = last?.targetStep === undefined ? undefined : steps[last.targetStep - firstId];
    if (!ids.some((id) => plans.has(id) || results.has(id))) return this.#begin(steps, firstId);
    // The delivery of a result of an unfinished group: the one that finishes it goes on.
    if (!step || !last?.targetStep) {
      return this.#leave(this.#held, [], this.#isSoon(steps.filter((_, index) => !results.has(firstId + index))));
    }
    return this.#leave(this.#held, [await this.#broughtBy(step, last.targetStep, steps.length)], true);
  }

  /** Plans a group, and executes what of it this call holds: all of it, as a rule. */
  async #begin(steps: LazyStep[], firstId: number): Promise<unknown[]> {
    const size = steps.length;
    const plans = steps.map((step, index) => asleep(planOf(step, firstId + index, size)));
    if (steps.every(({ members }) => members?.sleepFor !== undefined || members?.sleepUntil !== undefined)) {
      return this.#leave(this.#held, plans, this.#isSoon(steps));
    }
    const planned = await this.#call.checkpoint(this.#held, plans);
    // What the call still holds when it ends is delivered on its own.
    if (this.#call.isLate) return this.#end();
    this.#held = [];
    const mine = steps.flatMap((step, index): Planned[] => {
      const plan = planned[index]?.token;
      return plan === undefined ? [] : [{ step, id: firstId + index, plan }];
    });
    if (mine.length < size || steps.some(({ execute }) => !execute)) return this.#bringAll(mine, steps);
    const keeper = new Keeper(this.#call);
    const results = await allOf(
      mine.map(async ({ step, id, plan }) => {
        const result = await this.#execute(step, id, size);
        await keeper.keep(plan, result);
        return result;
      }),
      () => this.#giveUp(keeper.held),
    );
    this.#held = keeper.held;
    // The delivery of the last result, on its own, finds the group complete.
    if (!keeper.holdsLast) return this.#leave(this.#held, [], true);
    await this.#watcher.continued();
    return Promise.all(steps.map((step, index) => this.#finished(step, results[index] as Step)));
  }

  /**
   * Has what this call holds of a group brought. Only the journal up to a result says whether that one completes the group: so
   * what is brought last comes next, and whatever was brought before it needs nothing more.
   */
  async #bringAll(mine: Planned[], steps: LazyStep[]): Promise<never> {
    const brought: Token[] = [];
    let left = mine.length;
    let last: { plan: Token; append: Append } | undefined;
    const keep = async (plan: Token, append: Append): Promise<void> => {
      const entries = await this.#call.checkpoint([plan], [append]);
      brought.push(...entries.flatMap(({ token }) => token ?? []));
    };
    await allOf(
      mine.map(async ({ step, id, plan }) => {
        const append = await this.#broughtBy(step, id, steps.length);
        left -= 1;
        if (left === 0) last = { plan, append };
        else await keep(plan, append);
      }),
      async () => {
        if (last) await keep(last.plan, last.append);
        await this.#giveUp(brought);
      },
    );
    if (!last) return this.#end();
    const { plan, append } = last;
    return this.#leave([plan, ...brought], [append], 'step' in append || this.#isSoon(steps));
  }

  /** What brings the result of one step of a group: its execution, or a request to whoever it waits for. */
  async #broughtBy(step: LazyStep, id: number, size: number): Promise<Append> {
    if (!step.execute) await this.#watcher.beforeExecution(step.name);
    const result = step.execute ? await this.#execute(step, id, size) : resultOf(step, id, size);
    return step.request?.(result) ?? { step: result };
  }

  /** A step of the group has failed, and will be attempted again: the results that are kept need no delivery. */
  async #giveUp(held: Token[]): Promise<void> {
    if (held.length > 0) await this.#call.checkpoint(held, []);
  }

  /** Whether the call stays for what one of `steps` waits for. */
  #isSoon(steps: LazyStep[]): boolean {
    return this.#call.lingerMs > 0 && steps.some((step) => mayComeWithin(step, this.#call.lingerMs));
  }

  /** Nothing is under way any more. `isSoon`: the call stays for what comes next. */
  async #leave(done: Token[], append: Append[], isSoon: boolean): Promise<never> {
    this.#leaving = this.#tellThatItLeaves(done, append, isSoon);
    try {
      return await this.#leaving;
    } finally {
      this.#leaving = undefined;
    }
  }

  async #tellThatItLeaves(done: Token[], append: Append[], isSoon: boolean): Promise<never> {
    if (isSoon && done.length > 0) return this.#end(await this.#call.stay(done, append));
    if (append.length > 0) await this.#call.checkpoint(done, append);
    else await this.#call.finish(done);
    return this.#end();
  }

  async #execute(step: LazyStep, id: number, concurrent: number): Promise<Step> {
    await this.#watcher.beforeExecution(step.name);
    try {
      this.#inside = step.name;
      const running = step.execute?.();
      this.#inside = undefined;
      const out = await running;
      await this.#leaving?.catch(() => {});
      return resultOf(step, id, concurrent, out);
    } catch (error) {
      this.#inside = undefined;
      this.#failed ??= { stepName: step.name, error };
      throw error;
    }
  }

  /** As the journal gives it, so that the first call and all that follow see the same. */
  async #finished(step: LazyStep, result: Step): Promise<unknown> {
    const value = step.read(result);
    await this.#watcher.afterExecution(step.name, value);
    return value;
  }

  async #read(step: LazyStep, known: Step | undefined): Promise<unknown> {
    if (!known) throw new WorkflowError(`the journal has no result of '${step.name}'`);
    return known === this.#journal.last ? this.#finished(step, known) : step.read(known);
  }

  #end(next?: Handover): Promise<never> {
    this.#suspend(next ? { next } : {});
    return never();
  }

  #stop(over: Over): Promise<never> {
    this.#suspend({ over });
    return never();
  }
}

function never(): Promise<never> {
  return new Promise(() => {});
}

/** All results, or the first error once nothing is under way any more. */
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
  return step.request?.(result) ?? asleep(result);
}
