/** Collects the story of each schedule: the calls, its triggers, and the states and plans that may have been in force. */
import type { Message, MessageId, Millis } from '../../src/engine/model.ts';
import type { ScheduleCommand } from '../../src/engine/schedules/commands.ts';
import type { Evidence } from './checks.ts';
import { type Call, type Ledger, refOf, type ScheduleAction, type Trigger } from './ledger.ts';
import { type Change, changeOf, initially, possibleValues } from './settings-in-force.ts';
import { WallClock } from './wall-clock.ts';

export type ScheduleState = 'gone' | 'active' | 'paused';

export interface ScheduleStory {
  scheduleId: string;
  /** All calls except those that were rejected or found no schedule. */
  calls: (ScheduleAction & Call)[];
  states: Change<ScheduleState>[];
  plans: Change<PlanInForce>[];
  /** In the order in which they were saved. */
  triggers: SavedTrigger[];
}

export interface PlanInForce {
  ref: number;
  command: ScheduleCommand;
}

/** The messages of a schedule that one transaction saved. With catch-up `all`, the messages may be for several times. */
export interface SavedTrigger {
  /** When the engine requested the transaction, and when the engine got the response or died. */
  startAtMs: Millis;
  endedAtMs: Millis;
  /** The wall-clock time at which the messages were created. */
  wallMs: Millis;
  plan: PlanInForce;
  /** The messages that are in the store. */
  messages: Message[];
  /** The number of messages per endpoint; equal for all endpoints of a URL group. */
  timesByUrl: Map<string, number>;
}

export function storiesOf(evidence: Evidence): ScheduleStory[] {
  const { ledger } = evidence.world;
  const wall = new WallClock(evidence.world);
  const callsById = Map.groupBy(ledger.scheduleCalls, ({ scheduleId }) => scheduleId);
  const triggersById = Map.groupBy(ledger.triggers, ({ messages }) => messages[0]?.settings.scheduleId ?? '');
  const plansByRef = new Map(
    ledger.scheduleCalls.flatMap((call) =>
      call.action === 'create' ? [[call.ref, { ref: call.ref, command: call.command }] as const] : [],
    ),
  );
  return [...callsById].map(([scheduleId, asked]) => {
    const calls = asked.filter(({ result, wasDone }) => result !== 'rejected' && wasDone !== false);
    const made = (triggersById.get(scheduleId) ?? []).flatMap(
      (trigger) => savedTriggerOf(trigger, plansByRef, { ...evidence, wall }) ?? [],
    );
    const plans = calls.flatMap((call) =>
      call.action === 'create' ? (changeOf(call, { ref: call.ref, command: call.command }) ?? []) : [],
    );
    return { scheduleId, calls, states: statesOf(calls), plans, triggers: made };
  });
}

/** The trigger of each message of a schedule, except messages that were retried from the DLQ. */
export function triggersByMessage(ledger: Ledger): Map<MessageId, Trigger & Call> {
  return new Map(ledger.triggers.flatMap((trigger) => trigger.messages.map(({ id }) => [id, trigger] as const)));
}

/** The state of the schedule from `fromMs` to `toMs`, if it is certain and did not change. */
export function certainState({ states }: ScheduleStory, fromMs: Millis, toMs: Millis): ScheduleState | undefined {
  return onlyOne(possibleValues(states, fromMs, toMs));
}

/** The plan in force from `fromMs` to `toMs`, if it is certain and did not change. */
export function certainPlan({ plans }: ScheduleStory, fromMs: Millis, toMs: Millis): PlanInForce | undefined {
  return onlyOne(possibleValues(plans, fromMs, toMs));
}

function onlyOne<T>(values: readonly T[]): T | undefined {
  return new Set(values).size === 1 ? values[0] : undefined;
}

/** Overwriting a paused schedule keeps it paused; a new schedule is active (contract M 15.3). */
function statesOf(calls: readonly (ScheduleAction & Call)[]): Change<ScheduleState>[] {
  const states: Change<ScheduleState>[] = [initially('gone')];
  const values = { pause: 'paused', resume: 'active', delete: 'gone' } as const;
  for (const call of calls) {
    const change = call.action === 'create' ? undefined : changeOf<ScheduleState>(call, values[call.action]);
    if (change) states.push(change);
  }
  for (const call of calls) {
    if (call.action !== 'create') continue;
    const before = possibleValues(states, call.startAtMs, call.endedAtMs);
    const isSurelyNew = before.every((state) => state === 'gone');
    const change = before.includes('gone') ? changeOf<ScheduleState>(call, 'active', isSurelyNew) : undefined;
    if (change) states.push(change);
  }
  return states;
}

function savedTriggerOf(
  { messages: asked, startAtMs, endedAtMs }: Trigger & Call,
  plansByRef: ReadonlyMap<number, PlanInForce>,
  { histories, wall }: Pick<Evidence, 'histories'> & { wall: WallClock },
): SavedTrigger | undefined {
  const messages = asked.flatMap(({ id }) => histories.get(id)?.message ?? []);
  const [first] = messages;
  const plan = first && plansByRef.get(refOf(first.body));
  if (!plan) return undefined;
  const timesByUrl = new Map([...Map.groupBy(messages, ({ url }) => url)].map(([url, all]) => [url, all.length]));
  return { startAtMs, endedAtMs, wallMs: wall.readingAt(startAtMs), plan, messages, timesByUrl };
}
