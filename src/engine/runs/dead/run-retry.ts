/**
 * Makes the run that replaces a failed one (contract W 21.3, 21.4). The new journal starts with the recorded entries of
 * the failed run. Entries that are sent again or wait again are copied and belong to the new run; both runs share all
 * other entries.
 */
import { newHeaderMap } from '../../../protocol/headers.ts';
import { mintRunId, type RandomBytes } from '../../../protocol/ids.ts';
import type { HeaderMap, MessageSettings, ResultMessage, RunSettings } from '../../../protocol/options/settings.ts';
import { applyRunConfig, applyRunConfigToCallback } from '../../../workflow/configuration.ts';
import { INITIAL_ENTRY_KEY } from '../../../workflow/entry-keys.ts';
import { DELIVERED_CALL_TYPES, entryBytesOf } from '../../../workflow/journal.ts';
import type { RunConfig, RunKey } from '../../../workflow/model.ts';
import { type Draft, notBeforeOf } from '../../messages/accept.ts';
import { copyAsNew } from '../../messages/dead-retry.ts';
import type { Message, MessageKey, Millis, NewEntry, NewRun } from '../../model.ts';
import { entryOf } from '../entries.ts';
import type { EntryOutline, FailedRunRef, RetriedEntry, RunOverride, RunRetry } from './dead-run-store.ts';

/** The data of a failed run that a retry needs. */
export interface FailedRunData {
  dlqId: string;
  run: FailedRunRef;
  /** The entries in order. The first is the initial entry of the run. */
  journal: readonly EntryOutline[];
  /** The keys of the entries to restart: their messages are sent again, their waits or invocations start again. */
  unfinished: ReadonlySet<MessageKey>;
  /** The messages of the first entry and of the unfinished entries. */
  messages: ReadonlyMap<MessageKey, Message>;
  /** The runs for which unfinished invocations waited. */
  children: ReadonlyMap<RunKey, ChildRun>;
}

/** A run that the failed run invoked, with its first message. */
export interface ChildRun {
  run: FailedRunRef;
  initial: Message;
}

export interface RunRetryContext {
  nowMs: Millis;
  /** As in `AcceptContext`. */
  leadMs?: Millis;
  random: RandomBytes;
  lazyAboveBytes: number;
  /** Returns a unique key. A retry calls this once for the run, and at most twice for each unfinished entry. */
  nextKey(): MessageKey;
}

/** The members of a run that each message of the run repeats. */
type RunHead = Pick<RunSettings, 'key' | 'id' | 'createdAtMs' | 'url'>;

/** The data that all entries of the new run need. */
interface RunCopy {
  head: RunHead;
  config: RunConfig;
  override: RunOverride;
  context: RunRetryContext;
}

/** The members of a `RunRetry` that only the last batch has. */
type LastBatchMembers = Pick<RunRetry<Draft>, 'waiters' | 'invocations' | 'children'>;

/** Generates the new run in batches of `entriesMax` entries. Throws when `failed` lacks a message or a child. */
export function* retryOf(
  failed: FailedRunData,
  override: RunOverride,
  context: RunRetryContext,
  entriesMax: number,
): Generator<RunRetry<Draft>> {
  const { run: failedRun, dlqId, journal, unfinished } = failed;
  const { runId } = override;
  const head: RunHead = {
    key: context.nextKey(),
    id: runId ?? mintRunId(context.random),
    createdAtMs: context.nowMs,
    url: failedRun.url,
  };
  const predecessor = { id: failedRun.id, createdAtMs: failedRun.createdAtMs };
  const copy: RunCopy = {
    head,
    config: { ...failedRun.config, ...configChangesOf(override), predecessor },
    override,
    context,
  };
  const run: NewRun = { id: head.id, url: head.url, createdAtMs: head.createdAtMs, config: copy.config };
  const members: LastBatchMembers = { waiters: [], invocations: [], children: [] };
  const retriedEntry = (entry: EntryOutline): RetriedEntry<Draft> => {
    const isRestarted = unfinished.has(entry.key);
    if (entry.position > 0 && !isRestarted) return sharedEntry(entry, head.key);
    const message = required(failed.messages, entry.key);
    switch (entry.kind) {
      case 'initial':
        return initialEntry(message, isRestarted, copy);
      case 'wait':
        return restartWait(message, entry, copy, members);
      case 'invoke': {
        const child = required(failed.children, message.settings.invoke?.runKey ?? -1);
        return restartInvocation(message, entry, draftOfChild(child, context), copy, members);
      }
      default:
        return { kind: 'message', message: draftOfCopy(message, context.nextKey(), entry, copy) };
    }
  };
  for (let from = 0; from < journal.length; from += entriesMax) {
    const entries = journal.slice(from, from + entriesMax).map(retriedEntry);
    const isLast = from + entriesMax >= journal.length;
    yield {
      ...{ projectId: failedRun.projectId, dlqId, run, runKey: head.key, journal: entries },
      ...{ isFirst: from === 0, isLast, ...(isLast ? members : NO_MEMBERS) },
    };
  }
}

const NO_MEMBERS: LastBatchMembers = { waiters: [], invocations: [], children: [] };

function required<K, V>(map: ReadonlyMap<K, V>, key: K): V {
  const value = map.get(key);
  if (value === undefined) throw new Error(`the message or run ${key} is missing`);
  return value;
}

function sharedEntry({ kind, key, entryKey, bodyBytes }: EntryOutline, runKey: RunKey): RetriedEntry<Draft> {
  const callType = DELIVERED_CALL_TYPES[kind];
  const bytes = callType === undefined ? 0 : entryBytesOf(bodyBytes, callType);
  return { kind: 'shared', key, entry: { runKey, kind, entryKey, bytes } };
}

function initialEntry(old: Message, isSent: boolean, copy: RunCopy): RetriedEntry<Draft> {
  const draft = draftOfCopy(old, copy.head.key, { kind: 'initial', entryKey: INITIAL_ENTRY_KEY }, copy);
  return isSent ? { kind: 'message', message: draft } : { kind: 'record', record: draft };
}

function draftOfCopy(
  old: Message,
  key: MessageKey,
  { kind, entryKey }: Pick<EntryOutline, 'kind' | 'entryKey'>,
  copy: RunCopy,
) {
  const { head, context } = copy;
  const message = copyMessage(old, key, copy);
  return { message, entry: entryOf(message, { runKey: head.key, kind, entryKey }, context.lazyAboveBytes) };
}

/** Restarts the wait with its full timeout. */
function restartWait(
  old: Message,
  entry: EntryOutline,
  copy: RunCopy,
  { waiters }: LastBatchMembers,
): RetriedEntry<Draft> {
  const { head, context } = copy;
  const { wait } = old.settings;
  if (!wait) throw new Error(`${old.key} is not a wait`);
  const deadlineMs = context.nowMs + (wait.deadlineMs - old.createdAtMs);
  const message = copyRecord(old, copy, {
    wait: {
      ...wait,
      deadlineMs,
      notified: copyResult(wait.notified, copy),
      timedOut: copyResult(wait.timedOut, copy),
      headers: withRunHead(wait.headers, head),
      timeoutHeaders: withRunHead(wait.timeoutHeaders, head),
    },
  });
  waiters.push({ key: message.key, eventId: wait.eventId, deadlineMs });
  return { kind: 'record', record: { message, entry: recordEntryOf(entry, head.key) }, event: 'WAITER_ADDED' };
}

/** Restarts the invocation, which then waits for a new child. */
function restartInvocation(
  old: Message,
  entry: EntryOutline,
  childDraft: Draft,
  copy: RunCopy,
  { invocations, children }: LastBatchMembers,
): RetriedEntry<Draft> {
  const { message: child } = childDraft;
  const { invoke } = old.settings;
  if (!invoke) throw new Error(`${old.key} is not an invocation`);
  const message = copyRecord(old, copy, {
    invoke: {
      runKey: child.key,
      runId: child.settings.run?.id ?? '',
      url: child.url,
      createdAtMs: child.createdAtMs,
      result: copyResult(invoke.result, copy),
    },
  });
  invocations.push({ key: message.key, childKey: child.key });
  children.push(childDraft);
  return { kind: 'record', record: { message, entry: recordEntryOf(entry, copy.head.key) }, event: 'INVOKED' };
}

function recordEntryOf({ kind, entryKey }: EntryOutline, runKey: RunKey): NewEntry {
  return { runKey, kind, entryKey, bytes: 0 };
}

/** The first message of a new child that replaces the given child. */
function draftOfChild({ run: { url, config }, initial: old }: ChildRun, context: RunRetryContext): Draft {
  const { nowMs, random } = context;
  const key = context.nextKey();
  const head: RunHead = { key, id: mintRunId(random), createdAtMs: nowMs, url };
  const copy = { head, config, override: {}, context };
  const run = { id: head.id, url, createdAtMs: nowMs, config };
  return { ...draftOfCopy(old, key, { kind: 'initial', entryKey: INITIAL_ENTRY_KEY }, copy), run };
}

/** A copy of `old` for the new run, with the changes of the override. */
function copyMessage(old: Message, key: MessageKey, { head, config, override, context }: RunCopy): Message {
  const isCall = old.settings.run?.callType === 'toCallback';
  const { callback, ...settings } = settingsIn(old.settings, head);
  const own = config.isKept || isCall ? settings : { ...settings, ...configChangesOf(override) };
  const configured = isCall
    ? { header: old.header, settings: own }
    : applyRunConfig({ header: old.header, settings: own }, config);
  return {
    ...copyAsNew(old, key, context, Math.max(context.nowMs, notBeforeOf(override, context), sleepEndMs(old))),
    ...configured,
    settings: callback
      ? { ...configured.settings, callback: applyRunConfigToCallback(callback, config) }
      : configured.settings,
  };
}

/**
 * When a sleep ends; 0 for a message without delay, because the time of the message may be from a clock that was ahead.
 */
function sleepEndMs({ createdAtMs, notBeforeMs }: Message): Millis {
  return notBeforeMs > createdAtMs ? notBeforeMs : 0;
}

/**
 * The changes of the override to the configuration. They are applied to the run and, unless the server keeps the configuration
 * of the run (`isKept`), also to each copied message of a step: then libraries repeat the configuration with each message.
 */
function configChangesOf({ runId: _id, delayMs: _delay, notBeforeMs: _notBefore, ...changes }: RunOverride) {
  return changes;
}

function copyRecord(
  old: Message,
  { head, context }: RunCopy,
  changes: Pick<MessageSettings, 'wait' | 'invoke'>,
): Message {
  const settings = { ...settingsIn(old.settings, head), ...changes };
  return { ...copyAsNew(old, context.nextKey(), context), settings };
}

function copyResult(result: ResultMessage, { head, config, override }: RunCopy): ResultMessage {
  const settings = settingsIn(result.settings, head);
  const own = config.isKept ? settings : { ...settings, ...configChangesOf(override) };
  return { url: result.url, ...applyRunConfig({ header: result.header, settings: own }, config) };
}

function settingsIn(settings: MessageSettings, head: RunHead): MessageSettings {
  return settings.run ? { ...settings, run: { ...settings.run, ...head } } : settings;
}

/** Returns `headers` with the id and creation time of the new run, which `GET /v2/waiters` shows. */
function withRunHead(headers: HeaderMap, { id, createdAtMs }: RunHead): HeaderMap {
  const map = newHeaderMap();
  for (const [name, values] of Object.entries(headers)) {
    if (/^(Upstash|Waypost)-Workflow-Runid$/.test(name)) map[name] = [id];
    else if (/^(Upstash|Waypost)-Workflow-Createdat$/.test(name)) map[name] = [String(createdAtMs)];
    else map[name] = values;
  }
  return map;
}
