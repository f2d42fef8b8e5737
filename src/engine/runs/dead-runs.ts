/**
 * What clients do with failed runs (contract W 21): resume them, restart them, repeat or cancel their failure callback.
 */

import { mintMessageId } from '../../protocol/ids.ts';
import type { Store } from '../../store/store.ts';
import type { RunKey } from '../../workflow/model.ts';
import type { OriginLine } from '../lanes/origin-line.ts';
import type { AcceptContext, Draft } from '../messages/accept.ts';
import { DeferredSlots } from '../messages/deferred-slots.ts';
import { type Intake, OF_CLIENT } from '../messages/intake.ts';
import type { DeliverySlots } from '../messages/placement.ts';
import type { Message, MessageKey, Millis, NewMessage, ProjectId } from '../model.ts';
import type { Clock } from '../ports.ts';
import type { EngineSettings } from '../settings.ts';
import { StoreUnavailable } from '../store-errors.ts';
import type { Numbers } from '../workers/numbers.ts';
import { begunAgainOf } from './begun-again.ts';
import type {
  DeadRunCommands,
  NotRetried,
  OutlinedEntry,
  RetriedAs,
  RunOverride,
  RunRetry,
  StartedRun,
} from './dead-run-store.ts';
import { type Beginning, type Remains, retryOf } from './run-retry.ts';

export interface DeadRunDeps {
  store: { deadRuns: Store['deadRuns']; runs: Pick<Store['runs'], 'findRecords' | 'findRun'> };
  numbers: Numbers;
  intake: Intake;
  clock: Clock;
  contextOf(projectId: ProjectId): AcceptContext;
  /** A wait was registered with this deadline. */
  noteDeadline(atMs: Millis): void;
  /** Something waits in the line that may go out from now on. */
  noteWaitingLine(line: OriginLine): void;
  /** A run may have been left in part: see `cancelLeft`. */
  noteLeft(): void;
  settings: Pick<EngineSettings, 'togetherMax'>;
}

/** Entries that one transaction saves, or one read has the messages of. */
const REVIVED_TOGETHER = 200;

type Commands = Pick<DeadRunCommands, 'resumeRun' | 'restartRun' | 'repeatFailureCallback'>;

/** Chooses the entries of the failed run with which the new journal begins, and those of them that are begun again. */
type Choose = (journal: readonly OutlinedEntry[]) => Pick<Remains, 'journal' | 'unfinished'>;

export class DeadRuns implements Commands {
  readonly #deps: DeadRunDeps;

  constructor(deps: DeadRunDeps) {
    this.#deps = deps;
  }

  async resumeRun(projectId: ProjectId, dlqId: string, override: RunOverride): Promise<StartedRun | NotRetried> {
    return this.#retry(projectId, dlqId, override, (journal) => ({ journal, unfinished: begunAgainOf(journal) }));
  }

  async restartRun(projectId: ProjectId, dlqId: string, override: RunOverride): Promise<StartedRun | NotRetried> {
    return this.#retry(projectId, dlqId, override, ([first]) => {
      return { journal: first ? [first] : [], unfinished: new Set(first && [first.key]) };
    });
  }

  async repeatFailureCallback(
    projectId: ProjectId,
    dlqId: string,
  ): Promise<StartedRun | 'missing' | 'notFailed' | 'unknown'> {
    const { store, numbers, intake, contextOf } = this.#deps;
    const [dead] = await store.deadRuns.findDeadRuns({ projectId, dlqIds: [dlqId] });
    if (!dead) return 'missing';
    if (dead.failureCallback?.state !== 'fail') return 'notFailed';
    const told = await store.deadRuns.findFailureCallback({ projectId, dlqId });
    if (!told) return 'unknown';
    const key = await numbers.take(1);
    const context = contextOf(projectId);
    const outcome = await intake.save(
      [{ message: repeated(told, key, context) }],
      ([newMessage]) =>
        store.deadRuns.repeatFailureCallback({ projectId, dlqId, message: placed(newMessage), nowMs: context.nowMs }),
      (saved) => (typeof saved === 'string' ? [] : [saved]),
      OF_CLIENT,
    );
    return typeof outcome === 'string' ? outcome : { runId: dead.run.id, createdAtMs: dead.run.createdAtMs };
  }

  async #retry(
    projectId: ProjectId,
    dlqId: string,
    override: RunOverride,
    choose: Choose,
  ): Promise<StartedRun | NotRetried> {
    const { numbers, contextOf, settings } = this.#deps;
    const remains = await this.#remainsOf(projectId, dlqId, choose);
    if (typeof remains === 'string') return remains;
    const keysMax = 1 + 2 * remains.unfinished.size;
    let nextKey = await numbers.take(keysMax);
    const context = contextOf(projectId);
    const { randomness, nowMs, leadMs = 0, lazyAboveBytes } = context;
    const random = (count: number): Uint8Array => randomness.bytes(count);
    const making = { nowMs, leadMs, random, lazyAboveBytes, nextKey: () => nextKey++ };
    return this.#saveAll(retryOf(remains, override, making, settings.togetherMax ?? REVIVED_TOGETHER));
  }

  /** A long run in pieces: one transaction for twenty thousand messages would keep all others waiting. */
  async #saveAll(pieces: Iterable<RunRetry<Draft>>): Promise<StartedRun | NotRetried> {
    const { noteDeadline, noteWaitingLine, noteLeft } = this.#deps;
    // Nothing of a run that is not whole goes out.
    const deferred = new DeferredSlots(noteWaitingLine);
    let begun: RunRetry<Draft> | undefined;
    try {
      for (const piece of pieces) {
        const { kind } = await this.#save(piece, isWhole(piece) ? undefined : deferred);
        if (kind === 'lost') throw new StoreUnavailable('the run was given up while it was being revived');
        if (kind !== 'retried') return kind;
        begun = piece;
      }
    } finally {
      if (begun && !begun.isLast) noteLeft();
    }
    if (!begun) throw new Error('a run has a first entry');
    deferred.open();
    for (const { deadlineMs } of begun.waiters) noteDeadline(deadlineMs);
    return { runId: begun.run.id, createdAtMs: begun.run.createdAtMs };
  }

  #save(piece: RunRetry<Draft>, slots: DeliverySlots | undefined): Promise<RetriedAs> {
    const { store, intake, clock } = this.#deps;
    return intake.save(
      messagesOf(piece),
      (newMessages) => store.deadRuns.retryRun({ ...withPlaces(piece, newMessages), nowMs: clock.nowMs() }),
      (retried) => (retried.kind === 'retried' ? [...retried.messages, ...retried.children] : []),
      { ...OF_CLIENT, ...(slots && { slots }) },
    );
  }

  async #remainsOf(projectId: ProjectId, dlqId: string, choose: Choose): Promise<Remains | 'missing' | 'unknown'> {
    const { store } = this.#deps;
    const [dead] = await store.deadRuns.findDeadRuns({ projectId, dlqIds: [dlqId] });
    if (!dead) return 'missing';
    const { run } = dead;
    const { journal, unfinished } = choose(await store.deadRuns.outlineJournal({ projectId, runKey: run.key }));
    const [first] = journal;
    if (!first) return 'unknown';
    const messages = await this.#messages(projectId, [...new Set([first.key, ...unfinished])]);
    const children = messages && (await this.#children(projectId, messages));
    return messages && children ? { dlqId, run, journal, unfinished, messages, children } : 'unknown';
  }

  /** `undefined` when one of them is gone. */
  async #messages(projectId: ProjectId, keys: MessageKey[]): Promise<ReadonlyMap<MessageKey, Message> | undefined> {
    const messages = new Map<MessageKey, Message>();
    for (let from = 0; from < keys.length; from += REVIVED_TOGETHER) {
      const found = await this.#deps.store.runs.findRecords({
        projectId,
        keys: keys.slice(from, from + REVIVED_TOGETHER),
      });
      for (const message of found) messages.set(message.key, message);
    }
    return messages.size < keys.length ? undefined : messages;
  }

  /** The runs that the invocations among `messages` had started; `undefined` when too little of one of them is kept. */
  async #children(
    projectId: ProjectId,
    messages: ReadonlyMap<MessageKey, Message>,
  ): Promise<ReadonlyMap<RunKey, Beginning> | undefined> {
    const { store } = this.#deps;
    const children = new Map<RunKey, Beginning>();
    for (const { settings } of messages.values()) {
      if (!settings.invoke) continue;
      const run = await store.runs.findRun({ projectId, key: settings.invoke.runKey });
      const [first] = run ? await store.deadRuns.outlineJournal({ projectId, runKey: run.key }) : [];
      const [initial] = first ? await store.runs.findRecords({ projectId, keys: [first.key] }) : [];
      if (!run || !initial) return undefined;
      children.set(run.key, { run, initial });
    }
    return children;
  }
}

/** Those of the journal in their order, then the children. */
function messagesOf({ journal, children }: RunRetry<Draft>): Draft[] {
  return [...journal.flatMap((entry) => (entry.kind === 'message' ? [entry.message] : [])), ...children];
}

/** Of such a run messages may go out as soon as it is saved. */
function isWhole({ isFirst, isLast }: RunRetry<unknown>): boolean {
  return isFirst && isLast;
}

/** The same as a new message, which has all its attempts before it. */
function repeated(told: Message, key: MessageKey, { nowMs, randomness }: AcceptContext): Message {
  const id = mintMessageId(key, (count) => randomness.bytes(count));
  return { ...told, key, id, createdAtMs: nowMs, notBeforeMs: nowMs };
}

/** `newMessages`: those of `messagesOf`, each with its state. */
function withPlaces({ journal, children, ...rest }: RunRetry<unknown>, newMessages: readonly NewMessage[]): RunRetry {
  let next = 0;
  const nextPlaced = (): NewMessage => placed(newMessages[next++]);
  return {
    ...rest,
    journal: journal.map((entry) => (entry.kind === 'message' ? { kind: 'message', message: nextPlaced() } : entry)),
    children: children.map(nextPlaced),
  };
}

function placed(newMessage: NewMessage | undefined): NewMessage {
  if (!newMessage) throw new Error('a message was not placed');
  return newMessage;
}
