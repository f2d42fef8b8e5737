/**
 * Steps of one call: those that the journal has are read from it, the others are executed and kept, and the workflow goes
 * on. Steps that are begun in the same turn of the event loop are a group. The journal gets what the official library
 * would have left in it, so that either may take over (contract K 6).
 */
import { type Append, type Call, CallOver, type Entry, type Token } from './call.ts';
import { changeAtReturn, changeOf } from './code-changes.ts';
import { type CodeChangedError, WorkflowError } from './errors.ts';
import type { Journal } from './journal.ts';
import { asleep, type LazyStep, planOf, resultOf } from './steps.ts';
import type { Step } from './types.ts';

/** What is told of steps as they run. */
export interface Watcher {
  beforeExecution(stepName: string): Promise<void>;
  afterExecution(stepName: string, result: unknown): Promise<void>;
}

/** Why a call ends in the middle of the workflow, which is not asked whether it agrees. */
type Over = CallOver | CodeChangedError;

/** Steps that were begun in one turn; alone, or together. */
interface Group {
  firstId: number;
  steps: LazyStep[];
  values?: Promise<unknown[]>;
}

export class Execution {
  /** Resolves when nothing is left to do in this call, although the workflow has not returned: with why, if it must not. */
  readonly suspended: Promise<{ over?: Over }>;
  readonly #journal: Journal;
  readonly #call: Call;
  readonly #watcher: Watcher;
  #suspend: (why: { over?: Over }) => void = () => {};
  /** Steps that the workflow has come to, and so the id of the latest. */
  #count = 0;
  #open: Group | undefined;
  /** The step whose function is being called. */
  #inside: string | undefined;
  /** The step that threw, and what. */
  #failed: { stepName: string; error: unknown } | undefined;
  /** What the call holds and has no more to do for, once something follows. */
  #held: Token[];

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

  /** Of a message that the call holds. */
  get token(): Token | undefined {
    return this.#held[0];
  }

  /** The name of the step that has thrown `error`. */
  stepOf(error: unknown): string | undefined {
    return this.#failed?.error === error ? this.#failed?.stepName : undefined;
  }

  /** The step's result. Never settles when this call is not the one that brings it. */
  async add<T>(step: LazyStep<T>): Promise<T> {
    if (this.#inside !== undefined)
      throw new WorkflowError(`A step cannot run inside another one: '${step.name}' inside '${this.#inside}'.`);
    if (this.#failed)
      throw new WorkflowError(`The workflow went on after '${this.#failed.stepName}' had failed. Let its error out.`);
    this.#count += 1;
    this.#open ??= { firstId: this.#count, steps: [] };
    const group = this.#open;
    const index = group.steps.push(step) - 1;
    // All that is begun in this turn is in the group by then, in a call that goes on as in one that reads the journal.
    await Promise.resolve();
    await Promise.resolve();
    if (!group.values) {
      this.#open = undefined;
      group.values = this.#valuesOf(group);
    }
    const values = await group.values;
    return values[index] as T;
  }

  async #valuesOf({ firstId, steps }: Group): Promise<unknown[]> {
    const change = changeOf(this.#journal, steps, firstId);
    if (change) return this.#end(change);
    try {
      const [step] = steps;
      if (step && steps.length === 1) return [await this.#single(step, firstId)];
      return await this.#group(steps, firstId);
    } catch (error) {
      if (error instanceof CallOver) return this.#end(error);
      throw error;
    }
  }

  async #single(step: LazyStep, id: number): Promise<unknown> {
    const known = this.#journal.results.get(id);
    if (known) return this.#read(step, known);
    if (!step.execute) {
      await this.#call.checkpoint(this.#held, [requestOf(step, resultOf(step, id, 1))]);
      return this.#end();
    }
    const result = await this.#execute(step, id, 1);
    const [entry] = await this.#call.checkpoint(this.#held, [{ step: result }]);
    // What the call still holds when it ends is delivered on its own.
    if (entry?.token === undefined || this.#call.isLate) return this.#end();
    this.#held = [entry.token];
    return this.#finished(step, result);
  }

  async #group(steps: LazyStep[], firstId: number): Promise<unknown[]> {
    const { results, plans, last } = this.#journal;
    const ids = steps.map((_, index) => firstId + index);
    if (!ids.some((id) => plans.has(id) || results.has(id))) return this.#begin(steps, firstId);
    if (ids.every((id) => results.has(id))) {
      return Promise.all(steps.map((step, index) => this.#read(step, results.get(firstId + index))));
    }
    const step = last?.targetStep === undefined ? undefined : steps[last.targetStep - firstId];
    // The delivery of a result of an unfinished group: the one that finishes it goes on.
    if (!step || !last?.targetStep) return this.#end();
    await this.#bring(step, last.targetStep, steps.length, this.#held);
    return this.#end();
  }

  /** Plans a group, and executes what of it this call holds: all of it, as a rule. */
  async #begin(steps: LazyStep[], firstId: number): Promise<unknown[]> {
    const size = steps.length;
    const plans = steps.map((step, index) => asleep(planOf(step, firstId + index, size)));
    const planned = await this.#call.checkpoint(this.#held, plans);
    // What the call still holds when it ends is delivered on its own.
    if (this.#call.isLate) return this.#end();
    this.#held = [];
    const isWhole = planned.every(({ token }) => token !== undefined) && steps.every(({ execute }) => execute);
    if (!isWhole) {
      const brought: Token[] = [];
      await allOf(
        steps.map(async (step, index) => {
          const token = planned[index]?.token;
          if (token !== undefined) brought.push(...(await this.#bring(step, firstId + index, size, [token])));
        }),
        () => this.#giveUp(brought),
      );
      return this.#end();
    }
    this.#held = planned.flatMap(({ token }) => token ?? []);
    const keeper = new Keeper(this.#call);
    const results = await allOf(
      steps.map(async (step, index) => {
        const result = await this.#execute(step, firstId + index, size);
        const plan = planned[index]?.token ?? '';
        await keeper.keep(plan, result);
        this.#held = this.#held.filter((held) => held !== plan);
        return result;
      }),
      () => this.#giveUp(keeper.held),
    );
    this.#held = keeper.held;
    // The delivery of the last result, on its own, finds the group complete.
    if (!keeper.holdsLast) return this.#end();
    return Promise.all(steps.map((step, index) => this.#finished(step, results[index] as Step)));
  }

  /**
   * Has the result of one step of a group brought: by executing it, or by whoever it waits for. Answers what the call holds
   * of it; a call that ends leaves that to a delivery of its own.
   */
  async #bring(step: LazyStep, id: number, size: number, done: Token[]): Promise<Token[]> {
    const result = step.execute ? await this.#execute(step, id, size) : resultOf(step, id, size);
    const entries = await this.#call.checkpoint(done, [step.request?.(result) ?? { step: result }]);
    return entries.flatMap(({ token }) => token ?? []);
  }

  /** A step of the group has failed, and will be delivered again: the results that are kept need no delivery. */
  async #giveUp(held: Token[]): Promise<void> {
    if (held.length > 0) await this.#call.checkpoint(held, []);
  }

  async #execute(step: LazyStep, id: number, concurrent: number): Promise<Step> {
    await this.#watcher.beforeExecution(step.name);
    try {
      this.#inside = step.name;
      const running = step.execute?.();
      this.#inside = undefined;
      return resultOf(step, id, concurrent, await running);
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

  #end(over?: Over): Promise<never> {
    this.#suspend(over ? { over } : {});
    return new Promise(() => {});
  }
}

/**
 * Keeps the results of a group whose plans this call holds. Those that finish together go together; a result that is not
 * the last one needs nothing more once the next is kept.
 */
class Keeper {
  readonly #call: Call;
  /** Results that are kept, and whose messages the call holds. */
  held: Token[] = [];
  /** Whether the call holds the latest entry, and so may go on after it. */
  holdsLast = false;
  #waiting: { plan: Token; result: Step }[] = [];
  #keeping: Promise<void> | undefined;

  constructor(call: Call) {
    this.#call = call;
  }

  /** Resolves when it is kept. */
  async keep(plan: Token, result: Step): Promise<void> {
    this.#waiting.push({ plan, result });
    while (this.#waiting.some((waiting) => waiting.result === result)) {
      this.#keeping ??= this.#keepAll().finally(() => {
        this.#keeping = undefined;
      });
      await this.#keeping;
    }
  }

  async #keepAll(): Promise<void> {
    const together = [...this.#waiting];
    const done = [...together.map(({ plan }) => plan), ...this.held];
    const entries: Entry[] = await this.#call.checkpoint(
      done,
      together.map(({ result }) => ({ step: result })),
    );
    this.#waiting = this.#waiting.filter((waiting) => !together.includes(waiting));
    this.held = entries.flatMap(({ token }) => token ?? []);
    this.holdsLast = entries.at(-1)?.token !== undefined;
  }
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
