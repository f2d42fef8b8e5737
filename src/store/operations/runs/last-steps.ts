/**
 * Saves the last step of a run, which arrives with the end of the run: it enters the journal as delivered and is never
 * sent.
 */
import type { MessageEvents, WriteContext } from '../logs/log-writer.ts';
import { CONTENT_AT, MESSAGE_AT } from '../messages/columns.ts';
import { countMessages } from '../messages/message-counts.ts';
import type { StoredChange, StoredNewMessage } from '../messages/rows.ts';
import { Journals } from './journals.ts';

type Change = Pick<StoredChange, 'lastStep'>;

export class LastSteps {
  readonly #context: WriteContext;
  readonly #journals: Journals;

  private constructor(context: WriteContext, journals: Journals) {
    this.#context = context;
    this.#journals = journals;
  }

  /** Loads the journals of the runs whose last steps are settled. Returns undefined if there are no last steps. */
  static async load(context: WriteContext, settled: readonly { change: Change }[]): Promise<LastSteps | undefined> {
    const journals = await Journals.load(context, lastStepsOf(settled), 0);
    return journals && new LastSteps(context, journals);
  }

  /** Whether the journal has another result of the step. */
  isTaken({ lastStep }: Change): boolean {
    return lastStep !== undefined && this.#journals.duplicateOf(lastStep) !== undefined;
  }

  /** Saves the last steps without checking limits, because their runs end. */
  async save(settled: readonly { change: Change }[]): Promise<void> {
    const { tx, logs, limits } = this.#context;
    const steps = lastStepsOf(settled);
    for (const { message, content, entry } of steps) {
      const key = message[MESSAGE_AT.key];
      if (entry) this.#journals.record({ content, key, createdAtMs: content[CONTENT_AT.created_at_ms], entry });
    }
    await this.#journals.save();
    if (limits.messagesPerDayMax > 0) await countMessages(tx, steps);
    await logs.append(tx, steps.map(eventsOf));
  }
}

function lastStepsOf(settled: readonly { change: Change }[]): StoredNewMessage[] {
  return settled.flatMap(({ change }) => change.lastStep ?? []);
}

function eventsOf({ message, events }: StoredNewMessage): MessageEvents {
  return {
    key: message[MESSAGE_AT.key],
    projectId: message[MESSAGE_AT.project_id],
    runKey: message[MESSAGE_AT.run_key],
    events,
    floorMs: 0,
  };
}
