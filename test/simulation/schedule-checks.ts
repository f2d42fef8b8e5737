/**
 * P16: does each time of an active schedule make its messages, once, whatever crashes and whoever changes it meanwhile?
 * And does a publish to a URL group make one message for each endpoint?
 */
import type { MessageId, Millis } from '../../src/engine/model.ts';
import type { Evidence } from './checks.ts';
import { AFTERMATH_MS, isQuietSince, PROMPT_MS } from './disturbances.ts';
import { possibleGroups, textOfUrls } from './group-workload.ts';
import { refOf } from './ledger.ts';
import {
  certainPlan,
  certainState,
  type MadeTrigger,
  type PlanInForce,
  type ScheduleStory,
  storiesOf,
  triggersByMessage,
} from './schedule-stories.ts';
import { periodOf } from './schedule-workload.ts';
import { possibleValues } from './settings-in-force.ts';
import { WallClock } from './wall-clock.ts';
import type { World } from './world.ts';

/** Between the decision that a schedule is triggered and the transaction that saves it. */
const DECIDED_BEFORE_MS: Millis = 1_000;
/** A clock that is further behind the times that were triggered already was wrong before: they come again. */
const SET_BACK_MS_MAX: Millis = 24 * 3_600_000;
/** A time that is further back was missed, not late. */
const LATE_MS: Millis = 60_000;

export function checkSchedules(evidence: Evidence): void {
  const { world } = evidence;
  checkSaved(evidence);
  checkGroupPublishes(world);
  const wall = new WallClock(world);
  const endings = endingsOf(evidence);
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

/** P3: a schedule moves on with all messages of its trigger or not at all; no others say that they are of a schedule. */
function checkSaved({ world, histories }: Evidence): void {
  const triggers = triggersByMessage(world.ledger);
  for (const { fortune, isStale, messages } of world.ledger.triggers) {
    const saved = messages.filter(({ id }) => histories.has(id)).length;
    const id = messages[0]?.id;
    if (fortune === 'acked' && !isStale && saved < messages.length) {
      world.violate('P16', `a time passed with ${saved} of its ${messages.length} messages`, id);
    } else if (saved > 0 && (isStale || fortune === 'rejected')) {
      world.violate('P16', 'a trigger that was not to be saved was', id);
    } else if (saved > 0 && saved < messages.length) {
      world.violate('P3', `${saved} of ${messages.length} messages of a trigger were saved`, id);
    }
  }
  const revived = new Set(world.ledger.deadCalls.flatMap(({ ids }) => ids ?? []));
  const unheard = world.ledger.deadCalls.filter(({ action, fortune }) => action === 'retry' && fortune === 'unknown');
  const strays = [...histories.values()].filter(
    ({ message }) => message.settings.scheduleId !== undefined && !triggers.has(message.id) && !revived.has(message.id),
  );
  const [stray] = strays.slice(unheard.flatMap(({ dlqIds }) => dlqIds).length);
  if (stray) world.violate('P2', 'a message of a schedule exists that no trigger made', stray.message.id);
}

/** A publish to a group is a batch, one message an endpoint as it could have been when the group was read. */
function checkGroupPublishes(world: World): void {
  for (const { groupName, urls, begunAtMs, readAtMs } of world.ledger.groupPublishes) {
    const text = textOfUrls(urls);
    if (urls.length > new Set(urls).size) world.violate('P16', `two messages of one endpoint of group ${groupName}`);
    if (!possibleGroups(world.ledger.groupCalls, groupName, [begunAtMs, readAtMs]).has(text)) {
      world.violate('P16', `group ${groupName} cannot have had these endpoints: ${text}`);
    }
  }
}

/** A paused or deleted schedule makes nothing after this was confirmed, an overwritten one nothing of its old plan. */
function checkInForce(world: World, story: ScheduleStory, { begunAtMs, endedAtMs, plan, messages }: MadeTrigger): void {
  const states = possibleValues(story.states, begunAtMs, endedAtMs);
  if (!states.includes('active')) {
    world.violate('P16', `schedule ${story.scheduleId} was triggered while it was ${states[0]}`, messages[0]?.id);
  }
  if (!possibleValues(story.plans, begunAtMs, endedAtMs).some(({ ref }) => ref === plan.ref)) {
    world.violate('P16', `schedule ${story.scheduleId} was triggered with an overwritten plan`, messages[0]?.id);
  }
}

/** Each message is what was planned. */
function checkMessages(world: World, { plan, messages }: MadeTrigger): void {
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

/** One message an endpoint, each time: of a URL, or of a group as it could have been at that moment. */
function checkEndpoints(world: World, { plan, messages, timesByUrl, begunAtMs }: MadeTrigger): void {
  const { destination } = plan.command;
  const id = messages[0]?.id;
  const times = new Set(timesByUrl.values());
  if (times.size !== 1) world.violate('P16', `its endpoints have ${[...times].join(', ')} messages of a trigger`, id);
  if (destination.kind === 'url') return;
  const urls = textOfUrls([...timesByUrl.keys()]);
  const readAtMs = begunAtMs - DECIDED_BEFORE_MS;
  if (!possibleGroups(world.ledger.groupCalls, destination.name, [readAtMs, begunAtMs]).has(urls)) {
    world.violate('P16', `group ${destination.name} cannot have had these endpoints: ${urls}`, id);
  }
}

/**
 * No time is triggered twice: each trigger finds a time of its own after those that the triggers before it found. Only a
 * schedule that was deleted, or that somebody touched while the clock was far behind, may begin anew.
 */
function checkOnce(world: World, { scheduleId, calls, triggers }: ScheduleStory, wall: WallClock): void {
  let passedMs = -Infinity;
  for (const [index, trigger] of triggers.entries()) {
    const { begunAtMs, plan, messages } = trigger;
    const decidedAtMs = begunAtMs - DECIDED_BEFORE_MS;
    const before = triggers[index - 1];
    // What was triggered stays known, however often somebody touches the schedule meanwhile.
    const knownMs = passedMs;
    for (const call of calls) {
      if (call.begunAtMs > begunAtMs || call.endedAtMs < (before?.begunAtMs ?? 0)) continue;
      const sinceMs = wall.lowest(call.begunAtMs, Math.min(call.endedAtMs, begunAtMs));
      if (call.action === 'delete') passedMs = -Infinity;
      else if (sinceMs < knownMs - SET_BACK_MS_MAX) passedMs = Math.min(passedMs, sinceMs);
    }
    const period = periodOf(plan.command.options.cron);
    if (period.kind === 'interval') {
      checkInterval(world, { scheduleId, calls, triggers }, index);
      passedMs = Math.max(passedMs, wall.lowest(decidedAtMs, begunAtMs));
      continue;
    }
    const times = Math.max(...trigger.timesByUrl.values());
    if (times > 1 && !makesUpForEach(plan)) {
      world.violate('P16', `schedule ${scheduleId} made up for ${times} times at once`, messages[0]?.id);
    }
    for (let time = 0; time < times; time += 1) {
      const nextMs = Math.floor(passedMs / period.everyMs + 1) * period.everyMs;
      if (nextMs > wall.highest(decidedAtMs, begunAtMs)) {
        const text = `schedule ${scheduleId} was triggered again for ${new Date(passedMs).toISOString()}`;
        world.violate('P16', text, messages[0]?.id);
      }
      // What nothing is known of can be no later than this.
      passedMs = nextMs === -Infinity ? wall.lowest(0, begunAtMs) : nextMs;
    }
    if (!makesUpForEach(plan)) passedMs = Math.max(passedMs, wall.lowest(decidedAtMs, begunAtMs));
  }
}

/** A late trigger may stand close before the next one, but three of them need two intervals less one. */
function checkInterval(
  world: World,
  { scheduleId, calls, triggers }: Pick<ScheduleStory, 'scheduleId' | 'calls' | 'triggers'>,
  index: number,
): void {
  const [first, last] = [triggers[index - 2], triggers[index]];
  if (!first || !last || first.plan.ref !== last.plan.ref) return;
  const isTouched = calls.some((call) => call.begunAtMs <= last.begunAtMs && call.endedAtMs >= first.begunAtMs);
  const isSet = world.jumps.some(({ atMs }) => atMs >= first.begunAtMs - DECIDED_BEFORE_MS && atMs <= last.begunAtMs);
  if (isTouched || isSet) return;
  const { everyMs } = periodOf(last.plan.command.options.cron);
  if (last.begunAtMs - first.begunAtMs < everyMs - DECIDED_BEFORE_MS) {
    world.violate('P16', `schedule ${scheduleId} was triggered three times in an interval`, last.messages[0]?.id);
  }
}

interface Known {
  wall: WallClock;
  endings: Endings;
}

/** In quiet times each time of an active schedule is triggered at once, and exactly once. */
function checkRegular(world: World, story: ScheduleStory, { wall, endings }: Known): void {
  for (const { atMs, timeMs, plan } of surelyDue(world, story, wall)) {
    if (!isQuietSince(world, atMs, atMs + PROMPT_MS)) continue;
    const made = story.triggers.filter((each) => each.begunAtMs >= atMs && each.begunAtMs <= atMs + PROMPT_MS);
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

/** The times at which a schedule surely was active with one plan, later than all that the clock had shown in its life. */
function surelyDue(
  world: World,
  story: ScheduleStory,
  wall: WallClock,
): { atMs: Millis; timeMs: Millis; plan: PlanInForce }[] {
  const everyMs = 60_000;
  return wall.multiples(everyMs, 0, world.clock.elapsedMs).flatMap(({ atMs, timeMs }) => {
    const [fromMs, toMs] = [atMs - DECIDED_BEFORE_MS, atMs + PROMPT_MS];
    const plan = certainPlan(story, fromMs, toMs);
    if (!plan || certainState(story, fromMs, toMs) !== 'active') return [];
    const period = periodOf(plan.command.options.cron);
    if (period.kind === 'interval' || timeMs % period.everyMs !== 0) return [];
    return timeMs > passedBefore(story, atMs, wall) ? [{ atMs, timeMs, plan }] : [];
  });
}

/** A clock time up to which the schedule may have had its times already, or wait for none. */
function passedBefore(story: ScheduleStory, atMs: Millis, wall: WallClock): Millis {
  let passedMs = -Infinity;
  let sinceMs: Millis = 0;
  let isGone = true;
  for (const { action, fortune, begunAtMs, endedAtMs } of story.calls) {
    if (begunAtMs >= atMs) break;
    const highestMs = Math.max(passedMs, wall.highest(sinceMs, Math.min(endedAtMs, atMs)));
    const nowMs = wall.highest(begunAtMs, Math.min(endedAtMs, atMs));
    // Resuming an active schedule changes nothing.
    const isIdle = action === 'resume' && certainState(story, begunAtMs - 1, begunAtMs - 1) !== 'paused';
    if (fortune !== 'acked' || action === 'pause' || isIdle) passedMs = highestMs;
    else if (action === 'create' && isGone) passedMs = nowMs;
    else if (action !== 'delete') passedMs = Math.max(nowMs, Math.min(highestMs, nowMs + SET_BACK_MS_MAX));
    isGone = fortune === 'acked' ? action === 'delete' : isGone && action !== 'create';
    sinceMs = begunAtMs;
  }
  return Math.max(passedMs, wall.highest(sinceMs, atMs - 1));
}

/** An outage is made up for once it is over, unless the schedule wants none of that. */
function checkMadeUp(world: World, story: ScheduleStory, wall: WallClock): void {
  for (const { atMs, timeMs, plan } of surelyDue(world, story, wall)) {
    const { scheduleCatchUp, scheduleOverlap, cron } = plan.command.options;
    const quietAtMs = firstQuietAfter(world, atMs);
    if (scheduleCatchUp === 'skip' || scheduleOverlap === 'skip' || quietAtMs === undefined) continue;
    if (certainPlan(story, atMs, quietAtMs) !== plan || certainState(story, atMs, quietAtMs) !== 'active') continue;
    const isMade = story.triggers.some(({ begunAtMs }) => begunAtMs >= atMs && begunAtMs <= quietAtMs);
    if (isMade || mayHaveNoEndpoint(world, plan, atMs, quietAtMs)) continue;
    world.violate('P16', `schedule ${story.scheduleId} (${cron}) lost ${new Date(timeMs).toISOString()} in an outage`);
  }
}

/** When the world had been quiet for long enough after `atMs`; `undefined` when it never was. */
function firstQuietAfter({ disturbances, clock }: World, atMs: Millis): Millis | undefined {
  let quietAtMs = atMs + AFTERMATH_MS;
  for (const each of disturbances.toSorted((a, b) => a - b)) {
    if (each > quietAtMs) break;
    if (each + AFTERMATH_MS > quietAtMs) quietAtMs = each + AFTERMATH_MS;
  }
  return quietAtMs <= clock.elapsedMs ? quietAtMs : undefined;
}

/** With catch-up `all` no time is lost and none is added between two triggers that are known to be on time. */
function checkEach(world: World, { scheduleId, calls, triggers }: ScheduleStory): void {
  let fromIndex: number | undefined;
  for (const [index, trigger] of triggers.entries()) {
    const { plan, begunAtMs } = trigger;
    const { everyMs } = periodOf(plan.command.options.cron);
    const isOnTime = trigger.wallMs % everyMs < PROMPT_MS && isQuietSince(world, begunAtMs, begunAtMs + PROMPT_MS);
    if (!makesUpForEach(plan) || plan.command.destination.kind !== 'url' || !isOnTime) continue;
    const before = fromIndex === undefined ? undefined : triggers[fromIndex];
    const since = triggers.slice((fromIndex ?? index) + 1, index + 1);
    fromIndex = index;
    if (!before || before.plan.ref !== plan.ref) continue;
    if (calls.some((call) => call.begunAtMs <= begunAtMs && call.endedAtMs >= before.begunAtMs)) continue;
    const times = since.reduce((sum, { messages }) => sum + messages.length, 0);
    const due = Math.floor(trigger.wallMs / everyMs) - Math.floor(before.wallMs / everyMs);
    if (times !== due) {
      world.violate('P16', `schedule ${scheduleId} has ${times} messages for ${due} times`, trigger.messages[0]?.id);
    }
  }
}

/** With catch-up `skip` nothing is made for a time that was missed. */
function checkSkipped(world: World, { scheduleId, triggers }: ScheduleStory, wall: WallClock): void {
  for (const { plan, begunAtMs, messages } of triggers) {
    const { cron, scheduleCatchUp } = plan.command.options;
    const { kind, everyMs } = periodOf(cron);
    if (scheduleCatchUp !== 'skip' || kind === 'interval') continue;
    const decidedAtMs = begunAtMs - DECIDED_BEFORE_MS;
    const latestMs = Math.floor(wall.highest(decidedAtMs, begunAtMs) / everyMs) * everyMs;
    const lateMs = wall.lowest(decidedAtMs, begunAtMs) - latestMs;
    if (lateMs > LATE_MS) {
      world.violate('P16', `schedule ${scheduleId} made up for a time ${lateMs} ms late`, messages[0]?.id);
    }
  }
}

/** A schedule that does not overlap is triggered only when the messages of the trigger before have ended. */
function checkOverlap(world: World, { scheduleId, calls, triggers }: ScheduleStory, endings: Endings): void {
  for (const [index, { plan, begunAtMs, messages }] of triggers.entries()) {
    const before = triggers[index - 1];
    if (plan.command.options.scheduleOverlap !== 'skip' || before?.plan.ref !== plan.ref) continue;
    // It has forgotten what its namesake made, or had a trigger in between that made nothing.
    if (calls.some((call) => call.begunAtMs <= begunAtMs && call.endedAtMs >= before.begunAtMs)) continue;
    if (mayHaveNoEndpoint(world, plan, before.begunAtMs, begunAtMs)) continue;
    const madeAt = endings.createdAt.get(messages[0]?.id ?? '') ?? -1;
    for (const { id } of before.messages.slice(-before.timesByUrl.size)) {
      if ((endings.endedAt.get(id) ?? Infinity) < madeAt) continue;
      world.violate('P16', `schedule ${scheduleId} was triggered before this message had ended`, id);
    }
  }
}

/** Where in the order of all changes messages were created and ended, and what the clock showed at the end. */
interface Endings {
  createdAt: Map<MessageId, number>;
  endedAt: Map<MessageId, number>;
  endedAtWallMs: Map<MessageId, Millis>;
}

const TERMINAL: ReadonlySet<string> = new Set(['DELIVERED', 'FAILED', 'CANCELED']);

function endingsOf({ remains: failed }: Evidence): Endings {
  const endings: Endings = { createdAt: new Map(), endedAt: new Map(), endedAtWallMs: new Map() };
  for (const [index, { id, state }] of failed.changes.entries()) {
    if (state === 'CREATED') endings.createdAt.set(id, index);
    else if (TERMINAL.has(state)) endings.endedAt.set(id, index);
  }
  for (const { message, state, atMs } of failed.logs) {
    if (TERMINAL.has(state)) endings.endedAtWallMs.set(message.id, atMs);
  }
  return endings;
}

function makesUpForEach({ command }: PlanInForce): boolean {
  const { scheduleCatchUp, scheduleOverlap } = command.options;
  return scheduleCatchUp === 'all' && scheduleOverlap !== 'skip';
}

/** Whether the plan is for a URL group that may have been empty at some time. */
function mayHaveNoEndpoint({ ledger }: World, { command }: PlanInForce, fromMs: Millis, toMs = fromMs): boolean {
  const { destination } = command;
  if (destination.kind === 'url') return false;
  return possibleGroups(ledger.groupCalls, destination.name, [fromMs - DECIDED_BEFORE_MS, toMs + PROMPT_MS]).has('');
}

/** Whether the schedule does not overlap, and a message of its trigger before may not have ended at a time. */
function mayBeBusy(
  { jumps }: World,
  { triggers }: ScheduleStory,
  { plan, atMs, timeMs, endings }: { plan: PlanInForce; atMs: Millis; timeMs: Millis; endings: Endings },
): boolean {
  if (plan.command.options.scheduleOverlap !== 'skip') return false;
  // Once the clock was set, the time at which a message ended says nothing any more.
  if (jumps.some((jump) => jump.atMs > atMs)) return true;
  const before = triggers.findLast(({ begunAtMs }) => begunAtMs < atMs);
  return (before?.messages ?? []).some(({ id }) => (endings.endedAtWallMs.get(id) ?? Infinity) >= timeMs);
}
