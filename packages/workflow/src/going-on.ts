/**
 * One call, from what it delivers to its answer: the workflow runs from the journal, and anew with each message that is handed
 * to the call while it stays (contract K 6).
 */
import { answer, errorAnswer } from './answers.ts';
import { decodeBase64 } from './base64.ts';
import { Call, CallOver, type Handover } from './call.ts';
import { stepOfCallResult } from './call-result.ts';
import { CallContext } from './context.ts';
import { type Delivery, fetchEntries, findsStep, handoverOf, refused, tokenOf, type Workflow } from './delivery.ts';
import { CodeChangedError, WorkflowCancelAbort, WorkflowError, WorkflowNonRetryableError } from './errors.ts';
import { Execution } from './execution.ts';
import type { Reply } from './http.ts';
import { readJournal, upTo } from './journal.ts';
import { INFO, submissionsOf } from './middleware.ts';
import { messageOf } from './server.ts';
import type { RawStep } from './types.ts';
import { HEADER, inBothDialects } from './wire.ts';

/** What one message came to. */
interface Turn {
  /** Of the call, unless something comes next. */
  reply: Reply;
  next?: Handover | undefined;
}

export async function goOn<TInitialPayload, TResult>(
  workflow: Workflow<TInitialPayload, TResult>,
  delivery: Delivery<TInitialPayload>,
): Promise<Reply> {
  const underWay = new CallUnderWay(workflow, delivery);
  let turn = await underWay.take(handoverOf(delivery));
  while (turn.next) turn = await underWay.take(turn.next);
  return turn.reply;
}

class CallUnderWay<TInitialPayload, TResult> {
  readonly #workflow: Workflow<TInitialPayload, TResult>;
  readonly #delivery: Delivery<TInitialPayload>;
  readonly #call: Call;
  /** As far as the server has told of it. */
  #entries: readonly RawStep[] = [];

  constructor(workflow: Workflow<TInitialPayload, TResult>, delivery: Delivery<TInitialPayload>) {
    this.#workflow = workflow;
    this.#delivery = delivery;
    const { lingerMs, options } = workflow;
    const { endpoint, headers, middlewares } = delivery;
    // A middleware is told that a step is over once its result is on disk, so the last one cannot wait for the end of the run.
    const lastStepBytesMax = middlewares.isEmpty ? Number(headers.get(HEADER.endStep) ?? 0) : 0;
    const limits = { lingerMs, budgetMs: options.callBudgetMs, lastStepBytesMax };
    this.#call = new Call(endpoint.server, tokenOf(headers), limits, async (append, entries) => {
      if (middlewares.isEmpty) return;
      for (const info of submissionsOf(append, entries)) await middlewares.info(info);
    });
  }

  take(handed: Handover): Promise<Turn> {
    return handed.headers ? this.#bringResult(handed, handed.headers) : this.#runFrom(handed);
  }

  /** The answer of a third party enters the journal as the result of its step (contract W 14.5). */
  async #bringResult({ token, messageId, body }: Handover, headers: Record<string, string[]>): Promise<Turn> {
    const text = body ?? (await this.#fetchBody(token, messageId));
    if (text === undefined) return this.#answered('workflow-already-ended');
    const isDelivered = token === tokenOf(this.#delivery.headers);
    // The workflow is asked with the answer itself, as by the official library: it is none of its payloads.
    if (isDelivered && !(await findsStep(this.#workflow, this.#delivery, () => JSON.parse(text))))
      return this.#refused();
    const values = inBothDialects(Object.entries(headers).map(([name, [value = '']]) => [name, value]));
    const step = stepOfCallResult((name) => values.get(name.toLowerCase()) ?? '', text);
    const answered = this.#answered('fromCallback');
    if (!step) {
      await this.#call.finish([token]);
      return answered;
    }
    try {
      return { ...answered, next: await this.#call.stay([token], [{ step }]) };
    } catch (error) {
      if (error instanceof CallOver && error.reason === 'ended') return answered;
      throw error;
    }
  }

  /** Runs the workflow from the journal up to the message. */
  async #runFrom(handed: Handover): Promise<Turn> {
    const { endpoint, facts, middlewares } = this.#delivery;
    await middlewares.taken();
    const entries = await this.#entriesUpTo(handed);
    if (!entries) return this.#answered('workflow-already-ended');
    const journal = readJournal(entries);
    if (journal.isRepeated) {
      await this.#call.finish([handed.token]);
      return this.#answered('duplicate-step');
    }
    const call = this.#call;
    const execution = new Execution(journal, call, handed.token, {
      beforeExecution: (stepName) => middlewares.life('beforeExecution', { stepName }),
      afterExecution: (stepName, result) => middlewares.life('afterExecution', { stepName, result }),
      continued: async () => {
        await middlewares.info(INFO.executed);
        await middlewares.taken();
      },
    });
    const requestPayload = endpoint.payloadOf(journal.initialPayload);
    const known = { ...facts, retried: handed.retried, requestPayload };
    const context = new CallContext(known, endpoint.server, execution, call.signal);
    middlewares.context = context;
    if (!journal.last) await middlewares.life('runStarted', {});
    try {
      const running = this.#workflow.routeFunction(context).then((result) => ({ result }));
      const ended = await Promise.race([running, execution.suspended]);
      if (!('result' in ended)) {
        if (ended.over) throw ended.over;
        return { ...(await this.#executed()), next: ended.next };
      }
      if (execution.changeAtReturn) throw execution.changeAtReturn;
      if (execution.count === 0) return this.#refused();
      const { result } = ended;
      await middlewares.life('runCompleted', { result });
      const end = await execution.end();
      if (!end) return this.#executed();
      await middlewares.info(INFO.ending(facts.workflowRunId));
      await middlewares.info(INFO.ended(facts.workflowRunId));
      await middlewares.info(INFO.executed);
      return { reply: answer(facts.workflowRunId, 'ended', { ...end, result }) };
    } catch (error) {
      return this.#thrown(error, execution);
    }
  }

  async #thrown(error: unknown, execution: Execution): Promise<Turn> {
    let cause = error;
    try {
      // No step is waited for whose result nobody needs.
      if (error instanceof CallOver || error instanceof WorkflowCancelAbort) await execution.saved();
      else {
        const next = await execution.settled();
        if (next) return { ...(await this.#executed()), next };
      }
    } catch (notSaved) {
      cause = notSaved;
    }
    return this.#failed(cause, execution.stepOf(cause));
  }

  async #failed(error: unknown, stepName: string | undefined): Promise<Turn> {
    // What the server has given up is answered with a failure, since it may not know what of it is done.
    if (error instanceof CallOver && error.reason === 'ended') return this.#answered('workflow-already-ended');
    if (error instanceof WorkflowCancelAbort) {
      await this.#cancel();
      return this.#executed();
    }
    await this.#delivery.middlewares.debug('onError', {
      error: error instanceof Error ? error : new Error(String(error)),
    });
    const reply = errorAnswer(error, stepName);
    const isFinal = [CallOver, CodeChangedError, WorkflowNonRetryableError].some((kind) => error instanceof kind);
    // If the server could not be told, the answer tells it.
    return { reply, next: isFinal ? undefined : await this.#call.fail(reply).catch(() => undefined) };
  }

  /** With a token of the call: it needs none of the account. */
  async #cancel(): Promise<void> {
    const { endpoint, facts } = this.#delivery;
    const path = `/v2/workflows/runs/${encodeURIComponent(facts.workflowRunId)}?cancel=true`;
    const request = { method: 'DELETE', path, token: this.#call.token, isRepeatable: true };
    const { status, text } = await endpoint.server.send(request);
    // 404: it is over already, perhaps by this very request, whose answer was lost.
    if (status !== 200 && status !== 404)
      throw new WorkflowError(`the server has not cancelled the run: ${messageOf(text)}`, status);
  }

  /** What a delivery of the message would bring: no entry after its own. `undefined`: the run has ended. */
  async #entriesUpTo({ entries, messageId, token }: Handover): Promise<RawStep[] | undefined> {
    if (entries) {
      this.#entries = [...this.#entries, ...entries];
      return upTo(this.#entries, messageId);
    }
    const all = await fetchEntries(this.#delivery, token);
    const upToIt = all && upTo(all, messageId);
    if (upToIt && upToIt.length > this.#entries.length) this.#entries = upToIt;
    return upToIt;
  }

  /** What was delivered without its body: the message's own entry. `undefined`: the run has ended. */
  async #fetchBody(token: string, messageId: string): Promise<string | undefined> {
    const entries = await fetchEntries(this.#delivery, token);
    if (!entries) return undefined;
    const entry = entries.find((each) => each.messageId === messageId);
    if (!entry) throw new WorkflowError('The journal does not have the result of the call that was delivered.');
    return decodeBase64(entry.body);
  }

  async #executed(): Promise<Turn> {
    await this.#delivery.middlewares.info(INFO.executed);
    return this.#answered('success');
  }

  async #refused(): Promise<Turn> {
    const { facts, middlewares } = this.#delivery;
    return { reply: await refused(facts.workflowRunId, middlewares) };
  }

  #answered(finish: Parameters<typeof answer>[1]): Turn {
    return { reply: answer(this.#delivery.facts.workflowRunId, finish) };
  }
}
