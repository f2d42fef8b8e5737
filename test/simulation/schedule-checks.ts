/**
 * Checks P16: each time of an active schedule creates its messages exactly once, despite crashes and concurrent changes, and
 * a publish to a URL group creates one message for each endpoint.
 */
import type { MessageId, Millis } from '../../src/engine/model.ts';
import type { Evidence } from './checks.ts';
import { AFTERMATH_MS, isQuietSince, PROMPT_MS } from './disturbances.ts';
import { possibleGroups, textOfUrls } from './group-workload.ts';
import { refOf } from './ledger.ts';
import {
  certainPlan,
  certainState,
  type PlanInForce,
  type SavedTrigger,
  type ScheduleStory,
  storiesOf,
  triggersByMessage,
} from './schedule-stories.ts';
import { periodOf } from './schedule-workload.ts';
import { possibleValues } from './settings-in-force.ts';
import { WallClock } from './wall-clock.ts';
import type { World } from './world.ts';

/** The time between the decision to trigger a schedule and the transaction that saves the trigger. */
const DECISION_LEAD_MS: Millis = 1_000;
/**
 * If the clock is behind the latest trigger by more than this, the clock was wrong at that trigger, and the times since
 * then are triggered again.
 */
const SET_BACK_MS_MAX: Millis = 24 * 3_600_000;
/** A time that is more than this in the past was missed, not late. */
const LATE_MS: Millis = 60_000;

export function checkSchedules(evidence: Evidence): void {
  const { world } = evidence;
  checkSaved(evidence);
  checkGroupPublishes(world);
  const wall = new WallClock(world);
  const endings = messageEndsOf(evidence);
  for (const story of storiesOf(evidence)) {
    for (const trigger of story.triggers) {
      checkInForce(world, story, trigger);
      checkMessages(world, trigger);
      checkEndpoints(world, trigger);
    }
    checkOnce(world, story, wall);
    checkRegular(world, story, { wall, endings });
    checkMadeUp(world, story, wall);
    checkEach(world, story);
    checkSkipped(world, story, wall);
    checkOverlap(world, story, endings);
  }
}

/** P3: a schedule advances with all messages of its trigger or not at all; no other message belongs to a schedule. */
function checkSaved({ world, histories }: Evidence): void {
  const triggers = triggersByMessage(world.ledger);
  for (const { result, isStale, messages } of world.ledger.triggers) {
    const saved = messages.filter(({ id }) => histories.has(id)).length;
    const id = messages[0]?.id;
    if (result === 'acked' && !isStale && saved < messages.length) {
      world.violate('P16', `a time passed with ${saved} of its ${messages.length} messages`, id);
    } else if (saved > 0 && (isStale || result === 'rejected')) {
      world.violate('P16', 'a trigger that was not to be saved was', id);
    } else if (saved > 0 && saved < messages.length) {
      world.violate('P3', `${saved} of ${messages.length} messages of a trigger were saved`, id);
    }
  }
  const revived = new Set(world.ledger.deadCalls.flatMap(({ ids }) => ids ?? []));
  const unheard = world.ledger.deadCalls.filter(({ action, result }) => action === 'retry' && result === 'unknown');
  const strays = [...histories.values()].filter(
    ({ message }) => message.settings.scheduleId !== undefined && !triggers.has(message.id) && !revived.has(message.id),
  );
  const [stray] = strays.slice(unheard.flatMap(({ dlqIds }) => dlqIds).length);
  if (stray) world.violate('P2', 'a message of a schedule exists that no trigger made', stray.message.id);
}

/**
 * A publish to a group has one message for each endpoint of the group, in a state that the group may have had when it was
 * read.
 */
function checkGroupPublishes(world: World): void {
  for (const { groupName, urls, startAtMs, readAtMs } of world.ledger.groupPublishes) {
    const text = textOfUrls(urls);
    if (urls.length > new Set(urls).size) world.violate('P16', `two messages of one endpoint of group ${groupName}`);
    if (!possibleGroups(world.ledger.groupCalls, groupName, [startAtMs, readAtMs]).has(text)) {
      world.violate('P16', `group ${groupName} cannot have had these endpoints: ${text}`);
    }
  }
}

/**
 * Once a change is confirmed, a paused or deleted schedule creates no messages, and an overwritten schedule creates no
 * messages of its old plan.
 */
function checkInForce(
  world: World,
  story: ScheduleStory,
  { startAtMs, endedAtMs, plan, messages }: SavedTrigger,
): void {
  const states = possibleValues(story.states, startAtMs, endedAtMs);
  if (!states.includes('active')) {
    world.violate('P16', `schedule ${story.scheduleId} was triggered while it was ${states[0]}`, messages[0]?.id);
  }
  if (!possibleValues(story.plans, startAtMs, endedAtMs).some(({ ref }) => ref === plan.ref)) {
    world.violate('P16', `schedule ${story.scheduleId} was triggered with an overwritten plan`, messages[0]?.id);
  }
}

/** Each message matches the plan of its schedule. */
function checkMessages(world: World, { plan, messages }: SavedTrigger): void {
  const { destination, options } = plan.command;
  const { scheduleId, scheduleQueueName, delayMs = 0 } = options;
  for (const { id, body, url, settings, createdAtMs, notBeforeMs } of messages) {
    const { topicName, queueName, labels, maxRetries, flowControl } = settings;
    const isPlanned =
      refOf(body) === plan.ref &&
      settings.scheduleId === scheduleId &&
      queueName === scheduleQueueName &&
      maxRetries === options.settings.maxRetries &&
      flowControl?.key === options.settings.flowControl?.key &&
      labels?.join() === options.settings.labels?.join() &&
      settings.callback?.url === options.settings.callback?.url &&
      (destination.kind === 'url' ? url === destination.url : topicName === destination.name);
    if (!isPlanned) world.violate('P16', 'a message is not what its schedule planned', id);
    if (notBeforeMs - createdAtMs !== delayMs) {
      world.violate('P16', `a message is delayed by ${notBeforeMs - createdAtMs} ms, not ${delayMs}`, id);
    }
  }
}

/**
 * Each time has one message for the URL, or for each endpoint of the group in a state that it may have had at that
 * moment.
 */
function checkEndpoints(world: World, { plan, messages, timesByUrl, startAtMs }: SavedTrigger): void {
  const { destination } = plan.command;
  const id = messages[0]?.id;
  const times = new Set(timesByUrl.values());
  if (times.size !== 1) world.violate('P16', `its endpoints have ${[...times].join(', ')} messages of a trigger`, id);
  if (destination.kind === 'url') return;
  const urls = textOfUrls([...timesByUrl.keys()]);
  const readAtMs = startAtMs - DECISION_LEAD_MS;
  if (!possibleGroups(world.ledger.groupCalls, destination.name, [readAtMs, startAtMs]).has(urls)) {
    world.violate('P16', `group ${destination.name} cannot have had these endpoints: ${urls}`, id);
  }
}

/**
 * No time is triggered twice: each trigger has its own time, later than the times of all earlier triggers. Only a
 * schedule that was deleted, or changed while the clock was far behind, may repeat times.
 */
function checkOnce(world: World, { scheduleId, calls, triggers }: ScheduleStory, wall: WallClock): void {
  let passedMs = -Infinity;
  for (const [index, trigger] of triggers.entries()) {
    const { startAtMs, plan, messages } = trigger;
    const decidedAtMs = startAtMs - DECISION_LEAD_MS;
    const before = triggers[index - 1];
    // Triggered times stay known, however often the schedule is changed.
    const knownMs = passedMs;
    for (const call of calls) {
      if (call.startAtMs > startAtMs || call.endedAtMs < (before?.startAtMs ?? 0)) continue;
      const sinceMs = wall.lowest(call.startAtMs, Math.min(call.endedAtMs, startAtMs));
      if (call.action === 'delete') passedMs = -Infinity;
      else if (sinceMs < knownMs - SET_BACK_MS_MAX) passedMs = Math.min(passedMs, sinceMs);
    }
    const period = periodOf(plan.command.options.cron);
    if (period.kind === 'interval') {
      checkInterval(world, { scheduleId, calls, triggers }, index);
      passedMs = Math.max(passedMs, wall.lowest(decidedAtMs, startAtMs));
      continue;
    }
    const times = Math.max(...trigger.timesByUrl.values());
    if (times > 1 && !makesUpForEach(plan)) {
      world.violate('P16', `schedule ${scheduleId} made up for ${times} times at once`, messages[0]?.id);
    }
    for (let time = 0; time < times; time += 1) {
      const nextMs = Math.floor(passedMs / period.everyMs + 1) * period.everyMs;
      if (nextMs > wall.highest(decidedAtMs, startAtMs)) {
        const text = `schedule ${scheduleId} was triggered again for ${new Date(passedMs).toISOString()}`;
        world.violate('P16', text, messages[0]?.id);
      }
      // Without an earlier trigger, this is the earliest time that the trigger can have.
      passedMs = nextMs === -Infinity ? wall.lowest(0, startAtMs) : nextMs;
    }
    if (!makesUpForEach(plan)) passedMs = Math.max(passedMs, wall.lowest(decidedAtMs, startAtMs));
  }
}

/** A late trigger may be close to the next one, but three triggers need almost two intervals. */
function checkInterval(
  world: World,
  { scheduleId, calls, triggers }: Pick<ScheduleStory, 'scheduleId' | 'calls' | 'triggers'>,
  index: number,
): void {
  const [first, last] = [triggers[index - 2], triggers[index]];
  if (!first || !last || first.plan.ref !== last.plan.ref) return;
  const isTouched = calls.some((call) => call.startAtMs <= last.startAtMs && call.endedAtMs >= first.startAtMs);
  const isSet = world.jumps.some(({ atMs }) => atMs >= first.startAtMs - DECISION_LEAD_MS && atMs <= last.startAtMs);
  if (isTouched || isSet) return;
  const { everyMs } = periodOf(last.plan.command.options.cron);
  if (last.startAtMs - first.startAtMs < everyMs - DECISION_LEAD_MS) {
    world.violate('P16', `schedule ${scheduleId} was triggered three times in an interval`, last.messages[0]?.id);
  }
}

interface CheckContext {
  wall: WallClock;
  endings: MessageEnds;
}

/** Without recent faults, each time of an active schedule is triggered promptly and exactly once. */
function checkRegular(world: World, story: ScheduleStory, { wall, endings }: CheckContext): void {
  for (const { atMs, timeMs, plan } of surelyDue(world, story, wall)) {
    if (!isQuietSince(world, atMs, atMs + PROMPT_MS)) continue;
    const made = story.triggers.filter((each) => each.startAtMs >= atMs && each.startAtMs <= atMs + PROMPT_MS);
    const times = made.reduce((sum, { timesByUrl }) => sum + Math.max(...timesByUrl.values()), 0);
    if (times === 1) continue;
    if (
      times === 0 &&
      (mayHaveNoEndpoint(world, plan, atMs) || mayBeBusy(world, story, { plan, atMs, timeMs, endings }))
    ) {
      continue;
    }
    const text = `schedule ${story.scheduleId} was triggered ${times} times for ${new Date(timeMs).toISOString()}`;
    world.violate('P16', text, made[0]?.messages[0]?.id);
  }
}

/** The times at which a schedule was certainly active with one plan, later than any earlier reading of the clock. */
function surelyDue(
  world: World,
  story: ScheduleStory,
  wall: WallClock,
): { atMs: Millis; timeMs: Millis; plan: PlanInForce }[] {
  const everyMs = 60_000;
  return wall.multiples(everyMs, 0, world.clock.elapsedMs).flatMap(({ atMs, timeMs }) => {
    const [fromMs, toMs] = [atMs - DECISION_LEAD_MS, atMs + PROMPT_MS];
    const plan = certainPlan(story, fromMs, toMs);
    if (!plan || certainState(story, fromMs, toMs) !== 'active') return [];
    const period = periodOf(plan.command.options.cron);
    if (period.kind === 'interval' || timeMs % period.everyMs !== 0) return [];
    return timeMs > passedBefore(story, atMs, wall) ? [{ atMs, timeMs, plan }] : [];
  });
}

/** The wall-clock time up to which the times of the schedule may have been triggered already, or may not exist. */
function passedBefore(story: ScheduleStory, atMs: Millis, wall: WallClock): Millis {
  let passedMs = -Infinity;
  let sinceMs: Millis = 0;
  let isGone = true;
  for (const { action, result, startAtMs, endedAtMs } of story.calls) {
    if (startAtMs >= atMs) break;
    const highestMs = Math.max(passedMs, wall.highest(sinceMs, Math.min(endedAtMs, atMs)));
    const nowMs = wall.highest(startAtMs, Math.min(endedAtMs, atMs));
    // Resuming an active schedule changes nothing.
    const isIdle = action === 'resume' && certainState(story, startAtMs - 1, startAtMs - 1) !== 'paused';
    if (result !== 'acked' || action === 'pause' || isIdle) passedMs = highestMs;
    else if (action === 'create' && isGone) passedMs = nowMs;
    else if (action !== 'delete') passedMs = Math.max(nowMs, Math.min(highestMs, nowMs + SET_BACK_MS_MAX));
    isGone = result === 'acked' ? action === 'delete' : isGone && action !== 'create';
    sinceMs = startAtMs;
  }
  return Math.max(passedMs, wall.highest(sinceMs, atMs - 1));
}

/** Missed times are caught up after an outage, unless the schedule skips them. */
function checkMadeUp(world: World, story: ScheduleStory, wall: WallClock): void {
  for (const { atMs, timeMs, plan } of surelyDue(world, story, wall)) {
    const { scheduleCatchUp, scheduleOverlap, cron } = plan.command.options;
    const quietAtMs = firstQuietAfter(world, atMs);
    if (scheduleCatchUp === 'skip' || scheduleOverlap === 'skip' || quietAtMs === undefined) continue;
    if (certainPlan(story, atMs, quietAtMs) !== plan || certainState(story, atMs, quietAtMs) !== 'active') continue;
    const isMade = story.triggers.some(({ startAtMs }) => startAtMs >= atMs && startAtMs <= quietAtMs);
    if (isMade || mayHaveNoEndpoint(world, plan, atMs, quietAtMs)) continue;
    world.violate('P16', `schedule ${story.scheduleId} (${cron}) lost ${new Date(timeMs).toISOString()} in an outage`);
  }
}

/** The first time after `atMs` at which the world had been without faults for long enough, or `undefined`. */
function firstQuietAfter({ disturbances, clock }: World, atMs: Millis): Millis | undefined {
  let quietAtMs = atMs + AFTERMATH_MS;
  for (const each of disturbances.toSorted((a, b) => a - b)) {
    if (each > quietAtMs) break;
    if (each + AFTERMATH_MS > quietAtMs) quietAtMs = each + AFTERMATH_MS;
  }
  return quietAtMs <= clock.elapsedMs ? quietAtMs : undefined;
}

/** With catch-up `all`, no time is lost or added between two triggers that were certainly on time. */
function checkEach(world: World, { scheduleId, calls, triggers }: ScheduleStory): void {
  let fromIndex: number | undefined;
  for (const [index, trigger] of triggers.entries()) {
    const { plan, startAtMs } = trigger;
    const { everyMs } = periodOf(plan.command.options.cron);
    const isOnTime = trigger.wallMs % everyMs < PROMPT_MS && isQuietSince(world, startAtMs, startAtMs + PROMPT_MS);
    if (!makesUpForEach(plan) || plan.command.destination.kind !== 'url' || !isOnTime) continue;
    const before = fromIndex === undefined ? undefined : triggers[fromIndex];
    const since = triggers.slice((fromIndex ?? index) + 1, index + 1);
    fromIndex = index;
    if (!before || before.plan.ref !== plan.ref) continue;
    if (calls.some((call) => call.startAtMs <= startAtMs && call.endedAtMs >= before.startAtMs)) continue;
    const times = since.reduce((sum, { messages }) => sum + messages.length, 0);
    const due = Math.floor(trigger.wallMs / everyMs) - Math.floor(before.wallMs / everyMs);
    if (times !== due) {
      world.violate('P16', `schedule ${scheduleId} has ${times} messages for ${due} times`, trigger.messages[0]?.id);
    }
  }
}

/** With catch-up `skip`, a missed time creates no messages. */
function checkSkipped(world: World, { scheduleId, triggers }: ScheduleStory, wall: WallClock): void {
  for (const { plan, startAtMs, messages } of triggers) {
    const { cron, scheduleCatchUp } = plan.command.options;
    const { kind, everyMs } = periodOf(cron);
    if (scheduleCatchUp !== 'skip' || kind === 'interval') continue;
    const decidedAtMs = startAtMs - DECISION_LEAD_MS;
    const latestMs = Math.floor(wall.highest(decidedAtMs, startAtMs) / everyMs) * everyMs;
    const lateMs = wall.lowest(decidedAtMs, startAtMs) - latestMs;
    if (lateMs > LATE_MS) {
      world.violate('P16', `schedule ${scheduleId} made up for a time ${lateMs} ms late`, messages[0]?.id);
    }
  }
}

/** A schedule without overlap is triggered only after the messages of its previous trigger have ended. */
function checkOverlap(world: World, { scheduleId, calls, triggers }: ScheduleStory, endings: MessageEnds): void {
  for (const [index, { plan, startAtMs, messages }] of triggers.entries()) {
    const before = triggers[index - 1];
    if (plan.command.options.scheduleOverlap !== 'skip' || before?.plan.ref !== plan.ref) continue;
    // The schedule may have been recreated, or a trigger in between had no messages.
    if (calls.some((call) => call.startAtMs <= startAtMs && call.endedAtMs >= before.startAtMs)) continue;
    if (mayHaveNoEndpoint(world, plan, before.startAtMs, startAtMs)) continue;
    const madeAt = endings.createdAt.get(messages[0]?.id ?? '') ?? -1;
    for (const { id } of before.messages.slice(-before.timesByUrl.size)) {
      if ((endings.endedAt.get(id) ?? Infinity) < madeAt) continue;
      world.violate('P16', `schedule ${scheduleId} was triggered before this message had ended`, id);
    }
  }
}

/** The positions of the creation and the end of messages in the order of all changes, and the wall-clock time of the end. */
interface MessageEnds {
  createdAt: Map<MessageId, number>;
  endedAt: Map<MessageId, number>;
  endedAtWallMs: Map<MessageId, Millis>;
}

const TERMINAL: ReadonlySet<string> = new Set(['DELIVERED', 'FAILED', 'CANCELED']);

function messageEndsOf({ finalState }: Evidence): MessageEnds {
  const endings: MessageEnds = { createdAt: new Map(), endedAt: new Map(), endedAtWallMs: new Map() };
  for (const [index, { id, state }] of finalState.changes.entries()) {
    if (state === 'CREATED') endings.createdAt.set(id, index);
    else if (TERMINAL.has(state)) endings.endedAt.set(id, index);
  }
  for (const { message, state, atMs } of finalState.logs) {
    if (TERMINAL.has(state)) endings.endedAtWallMs.set(message.id, atMs);
  }
  return endings;
}

function makesUpForEach({ command }: PlanInForce): boolean {
  const { scheduleCatchUp, scheduleOverlap } = command.options;
  return scheduleCatchUp === 'all' && scheduleOverlap !== 'skip';
}

/** Whether the plan is for a URL group that may have been empty at some moment. */
function mayHaveNoEndpoint({ ledger }: World, { command }: PlanInForce, fromMs: Millis, toMs = fromMs): boolean {
  const { destination } = command;
  if (destination.kind === 'url') return false;
  return possibleGroups(ledger.groupCalls, destination.name, [fromMs - DECISION_LEAD_MS, toMs + PROMPT_MS]).has('');
}

/** Whether the schedule has no overlap, and a message of its previous trigger may not have ended at `timeMs`. */
function mayBeBusy(
  { jumps }: World,
  { triggers }: ScheduleStory,
  { plan, atMs, timeMs, endings }: { plan: PlanInForce; atMs: Millis; timeMs: Millis; endings: MessageEnds },
): boolean {
  if (plan.command.options.scheduleOverlap !== 'skip') return false;
  // After the clock was set, the end times of messages are not comparable.
  if (jumps.some((jump) => jump.atMs > atMs)) return true;
  const before = triggers.findLast(({ startAtMs }) => startAtMs < atMs);
  return (before?.messages ?? []).some(({ id }) => (endings.endedAtWallMs.get(id) ?? Infinity) >= timeMs);
}
