/** Draws random schedules and random actions on them. */
import type { Engine } from '../../src/engine/commands.ts';
import type { PublishCommand } from '../../src/engine/messages/publish-command.ts';
import type { Millis } from '../../src/engine/model.ts';
import type { ScheduleCommand } from '../../src/engine/schedules/commands.ts';
import type { Destination } from '../../src/protocol/urls/destination.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { GROUPS } from './group-workload.ts';
import { bodyOf, type ScheduleAction } from './ledger.ts';
import { PROJECT, type World } from './world.ts';

const MINUTE_MS = 60_000;

/** Cron expressions with their meaning: multiples of a period on the wall clock, or an interval from an unknown start. */
const PERIODS: Readonly<Record<string, { kind: 'calendar' | 'interval'; everyMs: Millis }>> = {
  '* * * * *': { kind: 'calendar', everyMs: MINUTE_MS },
  '*/2 * * * *': { kind: 'calendar', everyMs: 2 * MINUTE_MS },
  'CRON_TZ=Asia/Kolkata */5 * * * ?': { kind: 'calendar', everyMs: 5 * MINUTE_MS },
  '@every 1m': { kind: 'interval', everyMs: MINUTE_MS },
  '@every 2m30s': { kind: 'interval', everyMs: 2.5 * MINUTE_MS },
};
const EXPRESSIONS = Object.keys(PERIODS);
/**
 * After a clock change of an hour, each time in that hour creates a message: too many messages with a period of a minute.
 */
const SPARSE_EXPRESSIONS = EXPRESSIONS.slice(1, 3);

export function periodOf(cron: string): { kind: 'calendar' | 'interval'; everyMs: Millis } {
  const period = PERIODS[cron];
  if (!period) throw new Error(`nobody plans ${cron}`);
  return period;
}

const STEP_WEIGHTS = { createSchedule: 5, pauseSchedule: 3, resumeSchedule: 5, deleteSchedule: 2 };

export class ScheduleWorkload {
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #drawMessage: () => PublishCommand;
  readonly #ids: string[];

  /** `drawMessage` draws the messages of a schedule, including their destination. */
  constructor(world: World, random: SeededRandom, drawMessage: () => PublishCommand) {
    this.#world = world;
    this.#random = random.fork();
    this.#drawMessage = drawMessage;
    this.#ids = ['first', 'second', 'third', 'fourth'].slice(0, this.#random.choose([0, 2, 4]));
  }

  /** Starts one random action now, or several at the start of the next minute, so that they coincide with triggers. */
  step(): void {
    if (this.#ids.length === 0) return;
    const random = this.#random;
    if (random.chance(0.5)) return void this[`${random.weighted(STEP_WEIGHTS)}`]();
    const { clock } = this.#world;
    const untilMinuteMs = MINUTE_MS - (clock.wallMs() % MINUTE_MS);
    for (const scheduleId of this.#ids) {
      const step = random.weighted(STEP_WEIGHTS);
      clock.startTimer(untilMinuteMs + random.int(-60, 60), () => void this[`${step}`](scheduleId));
    }
  }

  createSchedule(scheduleId = this.#random.choose(this.#ids)): Promise<void> {
    const ref = this.#world.ledger.nextRef();
    const command = this.#commandOf(scheduleId, ref);
    return this.#call({ action: 'create', scheduleId, ref, command }, async (engine) => {
      await engine.createSchedule(PROJECT, command, 0);
      return 'saved';
    });
  }

  pauseSchedule(scheduleId = this.#random.choose(this.#ids)): Promise<void> {
    return this.#call({ action: 'pause', scheduleId }, (engine) => engine.setSchedulePaused(PROJECT, scheduleId, true));
  }

  resumeSchedule(scheduleId = this.#random.choose(this.#ids)): Promise<void> {
    return this.#call({ action: 'resume', scheduleId }, (engine) =>
      engine.setSchedulePaused(PROJECT, scheduleId, false),
    );
  }

  deleteSchedule(scheduleId = this.#random.choose(this.#ids)): Promise<void> {
    return this.#call({ action: 'delete', scheduleId }, async (engine) => {
      await engine.storeOf(PROJECT).schedules.deleteSchedule({ id: scheduleId });
      return 'saved';
    });
  }

  /** Creates new schedules in the healed world, whose triggers can be checked most strictly. */
  async plantFresh(): Promise<void> {
    if (this.#ids.length === 0) return;
    for (const scheduleId of ['fresh-one', 'fresh-two']) await this.createSchedule(scheduleId);
    for (const scheduleId of this.#ids) await this.resumeSchedule(scheduleId);
  }

  /** Pauses or deletes every active schedule, so that all work can finish. */
  async endAll(active: readonly string[]): Promise<void> {
    for (const scheduleId of active) {
      if (this.#random.chance(0.5)) await this.pauseSchedule(scheduleId);
      else await this.deleteSchedule(scheduleId);
    }
  }

  #commandOf(scheduleId: string, ref: number): ScheduleCommand {
    const random = this.#random;
    const { url, options } = this.#drawMessage();
    const { method, header, explicitHeader, settings } = options;
    const destination: Destination = random.chance(0.4)
      ? { kind: 'group', name: random.choose(GROUPS) }
      : { kind: 'url', url };
    const isEach = random.chance(0.3);
    const cron = random.choose(isEach ? SPARSE_EXPRESSIONS : EXPRESSIONS);
    const { queueName, ...rest } = settings;
    const planned: ScheduleCommand['options'] = { method, header, explicitHeader, settings: rest, cron, scheduleId };
    if (queueName !== undefined) planned.scheduleQueueName = queueName;
    if (random.chance(0.3)) planned.delayMs = random.int(1, 90) * 1_000;
    if (isEach) planned.scheduleCatchUp = 'all';
    else if (random.chance(0.6)) planned.scheduleCatchUp = random.choose(['skip', 'one']);
    if (random.chance(0.3)) planned.scheduleOverlap = 'skip';
    return { destination, body: bodyOf(ref, random.int(8, 150)), options: planned };
  }

  async #call(asked: ScheduleAction, action: (engine: Engine) => Promise<string>): Promise<void> {
    const { engine, ledger } = this.#world;
    if (!engine) return;
    const call = ledger.start(ledger.scheduleCalls, asked);
    await this.#world.call(
      call,
      `${asked.action} of schedule ${asked.scheduleId}`,
      () => action(engine),
      (answer) => {
        call.wasDone = answer === 'saved';
      },
    );
  }
}
