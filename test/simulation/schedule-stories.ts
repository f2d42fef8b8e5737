/** What became of each schedule: what was asked of it, the triggers that were made for it, and what could be in force when. */
import type { Message, MessageId, Millis } from '../../src/engine/model.ts';
import type { ScheduleCommand } from '../../src/engine/schedules/commands.ts';
import type { Evidence } from './checks.ts';
import { type Call, type Ledger, refOf, type ScheduleAction, type Trigger } from './ledger.ts';
import { type Change, changeOf, initially, possibleValues } from './settings-in-force.ts';
import { WallClock } from './wall-clock.ts';

export type ScheduleState = 'gone' | 'active' | 'paused';

export interface ScheduleStory {
  scheduleId: string;
  /** Without those that were refused or found no schedule. */
  calls: (ScheduleAction & Call)[];
  states: Change<ScheduleState>[];
  plans: Change<PlanInForce>[];
  /** In the order in which they were made. */
  triggers: MadeTrigger[];
}

export interface PlanInForce {
  ref: number;
  command: ScheduleCommand;
}

/** The messages that one transaction made for a schedule, of which there are several times of one trigger with catch-up `all`. */
export interface MadeTrigger {
  /** When the engine asked for it, and when it heard of it, or died. */
  begunAtMs: Millis;
  endedAtMs: Millis;
  /** What the clock showed when its messages were made. */
  wallMs: Millis;
  plan: PlanInForce;
  /** Those that are in the store, by key. */
  messages: Message[];
  /** How many of them there are to each endpoint; of a URL group all have equally many. */
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
    const calls = asked.filter(({ fortune, wasDone }) => fortune !== 'rejected' && wasDone !== false);
    const made = (triggersById.get(scheduleId) ?? []).flatMap(
      (trigger) => madeOf(trigger, plansByRef, { ...evidence, wall }) ?? [],
    );
    const plans = calls.flatMap((call) =>
      call.action === 'create' ? (changeOf(call, { ref: call.ref, command: call.command }) ?? []) : [],
    );
    return { scheduleId, calls, states: statesOf(calls), plans, triggers: made };
  });
}

/** The messages that were made for a schedule by a trigger, not by a retry from the DLQ, each with its trigger. */
export function triggersByMessage(ledger: Ledger): Map<MessageId, Trigger & Call> {
  return new Map(ledger.triggers.flatMap((trigger) => trigger.messages.map(({ id }) => [id, trigger] as const)));
}

/** The one state in which the schedule surely was all the time from `fromMs` to `toMs`, if there is one. */
export function certainState({ states }: ScheduleStory, fromMs: Millis, toMs: Millis): ScheduleState | undefined {
  return onlyOne(possibleValues(states, fromMs, toMs));
}

/** The one plan that surely was in force all the time, if there is one. */
export function certainPlan({ plans }: ScheduleStory, fromMs: Millis, toMs: Millis): PlanInForce | undefined {
  return onlyOne(possibleValues(plans, fromMs, toMs));
}

function onlyOne<T>(values: readonly T[]): T | undefined {
  return new Set(values).size === 1 ? values[0] : undefined;
}

/** Overwriting leaves a schedule paused that is; what is created anew is active (contract M 15.3). */
function statesOf(calls: readonly (ScheduleAction & Call)[]): Change<ScheduleState>[] {
  const states: Change<ScheduleState>[] = [initially('gone')];
  const values = { pause: 'paused', resume: 'active', delete: 'gone' } as const;
  for (const call of calls) {
    const change = call.action === 'create' ? undefined : changeOf<ScheduleState>(call, values[call.action]);
    if (change) states.push(change);
  }
  for (const call of calls) {
    if (call.action !== 'create') continue;
    const before = possibleValues(states, call.begunAtMs, call.endedAtMs);
    const isSurelyNew = before.every((state) => state === 'gone');
    const change = before.includes('gone') ? changeOf<ScheduleState>(call, 'active', isSurelyNew) : undefined;
    if (change) states.push(change);
  }
  return states;
}

function madeOf(
  { messages: asked, begunAtMs, endedAtMs }: Trigger & Call,
  plansByRef: ReadonlyMap<number, PlanInForce>,
  { histories, wall }: Pick<Evidence, 'histories'> & { wall: WallClock },
): MadeTrigger | undefined {
  const messages = asked.flatMap(({ id }) => histories.get(id)?.message ?? []);
  const [first] = messages;
  const plan = first && plansByRef.get(refOf(first.body));
  if (!plan) return undefined;
  const timesByUrl = new Map([...Map.groupBy(messages, ({ url }) => url)].map(([url, all]) => [url, all.length]));
  return { begunAtMs, endedAtMs, wallMs: wall.shown(begunAtMs), plan, messages, timesByUrl };
}
