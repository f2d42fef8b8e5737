/**
 * Handles one call from its delivery to its response: runs the workflow from the journal, and replays the workflow for
 * each message that is handed to the open call (contract K 6).
 */
import { decodeBase64 } from './base64.ts';
import { Call, CallOver, type Handover } from './call.ts';
import { stepOfCallResult } from './call-result.ts';
import { CallContext } from './context.ts';
import {
  type Delivery,
  fetchEntries,
  handoverOf,
  reachesStep,
  rejectUnauthenticated,
  tokenOf,
  type Workflow,
} from './delivery.ts';
import { CodeChangedError, WorkflowCancelAbort, WorkflowError, WorkflowNonRetryableError } from './errors.ts';
import { Execution } from './execution.ts';
import type { Reply } from './http.ts';
import { entriesUpTo, readJournal } from './journal.ts';
import { INFO, submissionsOf } from './middleware.ts';
import { errorResponse, finishResponse } from './responses.ts';
import { messageOf } from './server.ts';
import type { RawStep } from './types.ts';
import { HEADER, inBothDialects } from './wire.ts';

/** The result of handling one message. */
interface MessageResult {
  /** The response of the call, unless there is a next message. */
  reply: Reply;
  next?: Handover | undefined;
}

export async function continueRun<TInitialPayload, TResult>(
  workflow: Workflow<TInitialPayload, TResult>,
  delivery: Delivery<TInitialPayload>,
): Promise<Reply> {
  const call = new RunningCall(workflow, delivery);
  let result = await call.handle(handoverOf(delivery));
  while (result.next) result = await call.handle(result.next);
  return result.reply;
}

class RunningCall<TInitialPayload, TResult> {
  readonly #workflow: Workflow<TInitialPayload, TResult>;
  readonly #delivery: Delivery<TInitialPayload>;
  readonly #call: Call;
  /** The entries of the journal that the server has sent so far. */
  #entries: readonly RawStep[] = [];

  constructor(workflow: Workflow<TInitialPayload, TResult>, delivery: Delivery<TInitialPayload>) {
    this.#workflow = workflow;
    this.#delivery = delivery;
    const { lingerMs, options } = workflow;
    const { endpoint, headers, middlewares } = delivery;
    // Middlewares are notified of a step only after its result is on disk. So with middlewares, the last result is saved on its
    // own, and not sent together with the end of the run.
    const lastStepBytesMax = middlewares.isEmpty ? Number(headers.get(HEADER.endStep) ?? 0) : 0;
    const limits = { lingerMs, budgetMs: options.callBudgetMs, lastStepBytesMax };
    this.#call = new Call(endpoint.server, tokenOf(headers), limits, async (append, entries) => {
      if (middlewares.isEmpty) return;
      for (const info of submissionsOf(append, entries)) await middlewares.info(info);
    });
  }

  handle(handover: Handover): Promise<MessageResult> {
    return handover.headers ? this.#saveCallResult(handover, handover.headers) : this.#runFrom(handover);
  }

  /** Saves the response to a `context.call` as the result of its step (contract W 14.5). */
  async #saveCallResult(
    { token, messageId, body }: Handover,
    headers: Record<string, string[]>,
  ): Promise<MessageResult> {
    const text = body ?? (await this.#fetchBody(token, messageId));
    if (text === undefined) return this.#finished('workflow-already-ended');
    const isDelivered = token === tokenOf(this.#delivery.headers);
    // As in the official library, this check passes the response of the call to the workflow as the payload.
    if (isDelivered && !(await reachesStep(this.#workflow, this.#delivery, () => JSON.parse(text))))
      return this.#rejected();
    const values = inBothDialects(Object.entries(headers).map(([name, [value = '']]) => [name, value]));
    const step = stepOfCallResult((name) => values.get(name.toLowerCase()) ?? '', text);
    const finished = this.#finished('fromCallback');
    if (!step) {
      await this.#call.finish([token]);
      return finished;
    }
    try {
      return { ...finished, next: await this.#call.waitForNext([token], [{ step }]) };
    } catch (error) {
      if (error instanceof CallOver && error.reason === 'ended') return finished;
      throw error;
    }
  }

  /** Runs the workflow with the journal up to the message. */
  async #runFrom(handover: Handover): Promise<MessageResult> {
    const { endpoint, facts, middlewares } = this.#delivery;
    await middlewares.messageStarted();
    const entries = await this.#entriesUpTo(handover);
    if (!entries) return this.#finished('workflow-already-ended');
    const journal = readJournal(entries);
    if (journal.isRepeated) {
      await this.#call.finish([handover.token]);
      return this.#finished('duplicate-step');
    }
    const call = this.#call;
    const execution = new Execution(journal, call, handover.token, {
      beforeExecution: (stepName) => middlewares.lifeCycle('beforeExecution', { stepName }),
      afterExecution: (stepName, result) => middlewares.lifeCycle('afterExecution', { stepName, result }),
      continued: async () => {
        await middlewares.info(INFO.executed);
        await middlewares.messageStarted();
      },
    });
    const requestPayload = endpoint.payloadOf(journal.initialPayload);
    const callFacts = { ...facts, retried: handover.retried, requestPayload };
    const context = new CallContext(callFacts, endpoint.server, execution, call.signal);
    middlewares.context = context;
    if (!journal.last) await middlewares.lifeCycle('runStarted', {});
    try {
      const running = this.#workflow.routeFunction(context).then((result) => ({ result }));
      const ended = await Promise.race([running, execution.suspended]);
      if (!('result' in ended)) {
        if (ended.stopReason) throw ended.stopReason;
        return { ...(await this.#executed()), next: ended.next };
      }
      if (execution.changeAtReturn) throw execution.changeAtReturn;
      if (execution.count === 0) return this.#rejected();
      const { result } = ended;
      await middlewares.lifeCycle('runCompleted', { result });
      const end = await execution.end();
      if (!end) return this.#executed();
      await middlewares.info(INFO.ending(facts.workflowRunId));
      await middlewares.info(INFO.ended(facts.workflowRunId));
      await middlewares.info(INFO.executed);
      return { reply: finishResponse(facts.workflowRunId, 'ended', { ...end, result }) };
    } catch (error) {
      return this.#thrown(error, execution);
    }
  }

  async #thrown(error: unknown, execution: Execution): Promise<MessageResult> {
    let cause = error;
    try {
      // Nobody needs the results of running steps any more, so only results of finished steps are saved.
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

  async #failed(error: unknown, stepName: string | undefined): Promise<MessageResult> {
    // A lost call responds with a failure, since some of its results may not be saved.
    if (error instanceof CallOver && error.reason === 'ended') return this.#finished('workflow-already-ended');
    if (error instanceof WorkflowCancelAbort) {
      await this.#cancel();
      return this.#executed();
    }
    await this.#delivery.middlewares.debug('onError', {
      error: error instanceof Error ? error : new Error(String(error)),
    });
    const reply = errorResponse(error, stepName);
    const isFinal = [CallOver, CodeChangedError, WorkflowNonRetryableError].some((kind) => error instanceof kind);
    // If the checkpoint cannot report the failure, the response reports it.
    return { reply, next: isFinal ? undefined : await this.#call.fail(reply).catch(() => undefined) };
  }

  /** Cancels the run with the call's own token, so that no account token is needed. */
  async #cancel(): Promise<void> {
    const { endpoint, facts } = this.#delivery;
    const path = `/v2/workflows/runs/${encodeURIComponent(facts.workflowRunId)}?cancel=true`;
    const request = { method: 'DELETE', path, token: this.#call.token, isRepeatable: true };
    const { status, text } = await endpoint.server.send(request);
    // 404: the run has ended, perhaps by an earlier attempt of this request whose response was lost.
    if (status !== 200 && status !== 404)
      throw new WorkflowError(`the server did not cancel the run: ${messageOf(text)}`, status);
  }

  /** Returns the journal up to the entry of the message, as in its delivery. Returns undefined if the run has ended. */
  async #entriesUpTo({ entries, messageId, token }: Handover): Promise<RawStep[] | undefined> {
    if (entries) {
      this.#entries = [...this.#entries, ...entries];
      return entriesUpTo(this.#entries, messageId);
    }
    const all = await fetchEntries(this.#delivery, token);
    const upToIt = all && entriesUpTo(all, messageId);
    if (upToIt && upToIt.length > this.#entries.length) this.#entries = upToIt;
    return upToIt;
  }

  /** Reads the body of a message that was delivered without a body. Returns undefined if the run has ended. */
  async #fetchBody(token: string, messageId: string): Promise<string | undefined> {
    const entries = await fetchEntries(this.#delivery, token);
    if (!entries) return undefined;
    const entry = entries.find((each) => each.messageId === messageId);
    if (!entry) throw new WorkflowError('The journal does not contain the call result that was delivered.');
    return decodeBase64(entry.body);
  }

  async #executed(): Promise<MessageResult> {
    await this.#delivery.middlewares.info(INFO.executed);
    return this.#finished('success');
  }

  async #rejected(): Promise<MessageResult> {
    const { facts, middlewares } = this.#delivery;
    return { reply: await rejectUnauthenticated(facts.workflowRunId, middlewares) };
  }

  #finished(finish: Parameters<typeof finishResponse>[1]): MessageResult {
    return { reply: finishResponse(this.#delivery.facts.workflowRunId, finish) };
  }
}
