/**
 * Makes the run that replaces a failed one (contract W 21.3, 21.4). Its journal starts with the recorded entries of the failed
 * run. Entries that are sent or wait again are copied and belong to the new run; both runs share all others.
 */
import { newHeaderMap } from '../../../protocol/headers.ts';
import { mintRunId, type RandomBytes } from '../../../protocol/ids.ts';
import type { HeaderMap, MessageSettings, ResultPart, RunPart } from '../../../protocol/options/settings.ts';
import { applyRunConfig, applyRunConfigToCallback } from '../../../workflow/configuration.ts';
import { INITIAL_ENTRY_KEY } from '../../../workflow/entry-keys.ts';
import { DELIVERED_CALL_TYPES, entryBytesOf } from '../../../workflow/journal.ts';
import type { RunConfig, RunKey } from '../../../workflow/model.ts';
import { type Draft, notBeforeOf } from '../../messages/accept.ts';
import { renewed } from '../../messages/dead-retry.ts';
import type { Message, MessageKey, Millis, NewEntry, NewRun } from '../../model.ts';
import { entryOf } from '../entries.ts';
import type { FailedRunHead, OutlinedEntry, RetriedEntry, RunOverride, RunRetry } from './dead-run-store.ts';

/** The kept data of a failed run. */
export interface Remains {
  dlqId: string;
  run: FailedRunHead;
  /** In order; the first is the run's initial entry. */
  journal: readonly OutlinedEntry[];
  /** The entries to restart: to be sent, waited for or invoked again. */
  unfinished: ReadonlySet<MessageKey>;
  /** The first entry and the unfinished ones. */
  messages: ReadonlyMap<MessageKey, Message>;
  /** The runs for which unfinished invocations waited. */
  children: ReadonlyMap<RunKey, Beginning>;
}

/** A run with its first message. */
export interface Beginning {
  run: FailedRunHead;
  initial: Message;
}

export interface RunRetryContext {
  nowMs: Millis;
  /** As in `AcceptContext`. */
  leadMs?: Millis;
  random: RandomBytes;
  lazyAboveBytes: number;
  /** A unique number; called at most once for the run and twice for each unfinished entry. */
  nextKey(): MessageKey;
}

/** The members of a run that its messages repeat. */
type Head = Pick<RunPart, 'key' | 'id' | 'createdAtMs' | 'url'>;

/** The data that all entries of the new run need. */
interface Making {
  head: Head;
  config: RunConfig;
  override: RunOverride;
  context: RunRetryContext;
}

/** The members that the last batch has. */
type Rest = Pick<RunRetry<Draft>, 'waiters' | 'invocations' | 'children'>;

/** Generates the new run in batches of `entriesMax` entries. Throws when `remains` lacks a message or a child. */
export function* retryOf(
  remains: Remains,
  override: RunOverride,
  context: RunRetryContext,
  entriesMax: number,
): Generator<RunRetry<Draft>> {
  const { run: failed, dlqId, journal, unfinished } = remains;
  const { runId } = override;
  const head: Head = {
    key: context.nextKey(),
    id: runId ?? mintRunId(context.random),
    createdAtMs: context.nowMs,
    url: failed.url,
  };
  const predecessor = { id: failed.id, createdAtMs: failed.createdAtMs };
  const making: Making = { head, config: { ...failed.config, ...changesOf(override), predecessor }, override, context };
  const run: NewRun = { id: head.id, url: head.url, createdAtMs: head.createdAtMs, config: making.config };
  const rest: Rest = { waiters: [], invocations: [], children: [] };
  const made = (entry: OutlinedEntry): RetriedEntry<Draft> => {
    const isBegun = unfinished.has(entry.key);
    if (entry.position > 0 && !isBegun) return shared(entry, head.key);
    const message = existing(remains.messages, entry.key);
    switch (entry.kind) {
      case 'initial':
        return initial(message, isBegun, making);
      case 'wait':
        return waited(message, entry, making, rest);
      case 'invoke': {
        const child = existing(remains.children, message.settings.invoke?.runKey ?? -1);
        return invoked(message, entry, begin(child, context), making, rest);
      }
      default:
        return { kind: 'message', message: sent(message, context.nextKey(), entry, making) };
    }
  };
  for (let from = 0; from < journal.length; from += entriesMax) {
    const entries = journal.slice(from, from + entriesMax).map(made);
    const isLast = from + entriesMax >= journal.length;
    yield {
      ...{ projectId: failed.projectId, dlqId, run, runKey: head.key, journal: entries },
      ...{ isFirst: from === 0, isLast, ...(isLast ? rest : NOTHING_YET) },
    };
  }
}

const NOTHING_YET: Rest = { waiters: [], invocations: [], children: [] };

function existing<K, V>(map: ReadonlyMap<K, V>, key: K): V {
  const value = map.get(key);
  if (value === undefined) throw new Error(`there is nothing of ${key} to retry`);
  return value;
}

function shared({ kind, key, entryKey, bodyBytes }: OutlinedEntry, runKey: RunKey): RetriedEntry<Draft> {
  const callType = DELIVERED_CALL_TYPES[kind];
  const bytes = callType === undefined ? 0 : entryBytesOf(bodyBytes, callType);
  return { kind: 'shared', key, entry: { runKey, kind, entryKey, bytes } };
}

function initial(old: Message, isSent: boolean, making: Making): RetriedEntry<Draft> {
  const draft = sent(old, making.head.key, { kind: 'initial', entryKey: INITIAL_ENTRY_KEY }, making);
  return isSent ? { kind: 'message', message: draft } : { kind: 'record', record: draft };
}

function sent(
  old: Message,
  key: MessageKey,
  { kind, entryKey }: Pick<OutlinedEntry, 'kind' | 'entryKey'>,
  making: Making,
) {
  const { head, context } = making;
  const message = moved(old, key, making);
  return { message, entry: entryOf(message, { runKey: head.key, kind, entryKey }, context.lazyAboveBytes) };
}

/** The wait, restarted with its full timeout. */
function waited(old: Message, entry: OutlinedEntry, making: Making, { waiters }: Rest): RetriedEntry<Draft> {
  const { head, context } = making;
  const { wait } = old.settings;
  if (!wait) throw new Error(`${old.key} is no wait`);
  const deadlineMs = context.nowMs + (wait.deadlineMs - old.createdAtMs);
  const message = record(old, making, {
    wait: {
      ...wait,
      deadlineMs,
      notified: movedResult(wait.notified, making),
      timedOut: movedResult(wait.timedOut, making),
      headers: renamed(wait.headers, head),
      timeoutHeaders: renamed(wait.timeoutHeaders, head),
    },
  });
  waiters.push({ key: message.key, eventId: wait.eventId, deadlineMs });
  return { kind: 'record', record: { message, entry: recordEntry(entry, head.key) }, event: 'WAITER_ADDED' };
}

/** The invocation, which waits for a new child. */
function invoked(
  old: Message,
  entry: OutlinedEntry,
  begun: Draft,
  making: Making,
  { invocations, children }: Rest,
): RetriedEntry<Draft> {
  const { message: child } = begun;
  const { invoke } = old.settings;
  if (!invoke) throw new Error(`${old.key} is no invocation`);
  const message = record(old, making, {
    invoke: {
      runKey: child.key,
      runId: child.settings.run?.id ?? '',
      url: child.url,
      createdAtMs: child.createdAtMs,
      result: movedResult(invoke.result, making),
    },
  });
  invocations.push({ key: message.key, childKey: child.key });
  children.push(begun);
  return { kind: 'record', record: { message, entry: recordEntry(entry, making.head.key) }, event: 'INVOKED' };
}

function recordEntry({ kind, entryKey }: OutlinedEntry, runKey: RunKey): NewEntry {
  return { runKey, kind, entryKey, bytes: 0 };
}

/** A copy of a run's start, with a new id. */
function begin({ run: { url, config }, initial: old }: Beginning, context: RunRetryContext): Draft {
  const { nowMs, random } = context;
  const key = context.nextKey();
  const head: Head = { key, id: mintRunId(random), createdAtMs: nowMs, url };
  const making = { head, config, override: {}, context };
  const run = { id: head.id, url, createdAtMs: nowMs, config };
  return { ...sent(old, key, { kind: 'initial', entryKey: INITIAL_ENTRY_KEY }, making), run };
}

/** A copy of `old` for the new run, with the changes of the override. */
function moved(old: Message, key: MessageKey, { head, config, override, context }: Making): Message {
  const isCall = old.settings.run?.callType === 'toCallback';
  const { callback, ...settings } = settingsIn(old.settings, head);
  const own = config.isKept || isCall ? settings : { ...settings, ...changesOf(override) };
  const made = isCall
    ? { header: old.header, settings: own }
    : applyRunConfig({ header: old.header, settings: own }, config);
  return {
    ...renewed(old, key, context, Math.max(context.nowMs, notBeforeOf(override, context), wakesAtMs(old))),
    ...made,
    settings: callback ? { ...made.settings, callback: applyRunConfigToCallback(callback, config) } : made.settings,
  };
}

/** The end of a sleep, which is kept; 0 for a message without delay, whose time may be from a clock that was ahead. */
function wakesAtMs({ createdAtMs, notBeforeMs }: Message): Millis {
  return notBeforeMs > createdAtMs ? notBeforeMs : 0;
}

/** The changes to the configuration. If the run does not keep its configuration, each message repeats them. */
function changesOf({ runId: _id, delayMs: _delay, notBeforeMs: _notBefore, ...changes }: RunOverride) {
  return changes;
}

function record(old: Message, { head, context }: Making, changes: Pick<MessageSettings, 'wait' | 'invoke'>): Message {
  const settings = { ...settingsIn(old.settings, head), ...changes };
  return { ...renewed(old, context.nextKey(), context), settings };
}

function movedResult(result: ResultPart, { head, config, override }: Making): ResultPart {
  const settings = settingsIn(result.settings, head);
  const own = config.isKept ? settings : { ...settings, ...changesOf(override) };
  return { url: result.url, ...applyRunConfig({ header: result.header, settings: own }, config) };
}

function settingsIn(settings: MessageSettings, head: Head): MessageSettings {
  return settings.run ? { ...settings, run: { ...settings.run, ...head } } : settings;
}

/** `headers` with the id and time of the new run, as `GET /v2/waiters` shows them. */
function renamed(headers: HeaderMap, { id, createdAtMs }: Head): HeaderMap {
  const map = newHeaderMap();
  for (const [name, values] of Object.entries(headers)) {
    if (/^(Upstash|Waypost)-Workflow-Runid$/.test(name)) map[name] = [id];
    else if (/^(Upstash|Waypost)-Workflow-Createdat$/.test(name)) map[name] = [String(createdAtMs)];
    else map[name] = values;
  }
  return map;
}
