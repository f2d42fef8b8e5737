/**
 * How does a new message come into the store, and out to its endpoint? All new messages go one way. Each is drafted,
 * gets a delivery slot if it can go out at once, and is saved. Then the saved ones are dispatched, and unused slots are
 * given back.
 */
import { ApiError } from '../../protocol/errors.ts';
import { mintMessageId } from '../../protocol/ids.ts';
import type { EngineDeps } from '../deps.ts';
import { type DeliverySlots, dispatchSaved, place } from '../dispatch/placement.ts';
import { Slices } from '../loops/slices.ts';
import type { FollowUp, NewMessage } from '../model.ts';
import type { Reports } from '../reports.ts';
import { draftOfFollowUp } from '../runs/entries.ts';
import type { Numbers } from '../workers/numbers.ts';
import type { Draft } from './accept.ts';
import type { Saved } from './accepted.ts';

type IntakeContext = Pick<EngineDeps, 'clock' | 'randomness' | 'settings' | 'endOfTurn'> & {
  numbers: Numbers;
  reports: Pick<Reports, 'accepted'>;
};

/** Reads from the store's answer how each message was saved, in their order; `undefined` or missing: it was not. */
type SavedOf<Answer> = (answer: Answer) => readonly (Saved | undefined)[];

interface SaveOptions {
  mayBeAlone?: boolean;
  isOfClient?: boolean;
  slots?: DeliverySlots;
}

export const OF_CLIENT: SaveOptions = { isOfClient: true };

export class Intake {
  readonly #context: IntakeContext;
  readonly #slots: DeliverySlots;
  #isClosed = false;

  constructor(context: IntakeContext, slots: DeliverySlots) {
    this.#context = context;
    this.#slots = slots;
  }

  /** Each with a key and an id. Throws `StoreUnavailable`. */
  async draftsOf(follows: readonly FollowUp[]): Promise<Draft[]> {
    const { numbers, randomness, settings } = this.#context;
    const firstKey = await numbers.take(follows.length);
    return follows.map((followUp, index) => {
      const key = firstKey + index;
      const id = mintMessageId(key, (count) => randomness.bytes(count));
      return draftOfFollowUp(followUp, { key, id }, settings.lazyFetchBytes);
    });
  }

  /**
   * Gives each draft a state and passes them to `save`. Afterwards no slot is left reserved, even if `save` fails.
   * Answers and throws as `save` does; throws `StoreUnavailable` when it could not call it. `mayBeAlone`: as in
   * `dispatchSaved`. `isOfClient`: once the server shuts down, it throws `ApiError` 503. `slots`: instead of the worker's.
   */
  async save<Answer>(
    drafts: readonly Draft[],
    save: (newMessages: NewMessage[]) => Promise<Answer>,
    savedOf: SavedOf<Answer>,
    { mayBeAlone = true, isOfClient = false, slots = this.#slots }: SaveOptions = {},
  ): Promise<Answer> {
    if (drafts.length === 0) return save([]);
    const { reports, clock, numbers } = this.#context;
    const taken = numbers.take(drafts.length);
    const firstToken = taken instanceof Promise ? await taken : taken;
    const placed = this.slices().map(drafts, (draft, index) => place(draft, firstToken + index, slots));
    const newMessages = placed instanceof Promise ? await placed : placed;
    let saved: readonly (Saved | undefined)[] = [];
    try {
      if (isOfClient && this.#isClosed) throw new ApiError('unavailable', 'the server is shutting down');
      const answer = await save(newMessages);
      saved = savedOf(answer);
      return answer;
    } finally {
      const dispatched = this.slices().map(newMessages, (entry, index) => {
        const as = saved[index];
        if (as && as.state !== 'dropped') reports.accepted(entry, clock.nowMs());
        dispatchSaved(entry, as, slots, mayBeAlone);
      });
      if (dispatched instanceof Promise) await dispatched;
    }
  }

  /** From now on every client's request is refused. */
  close(): void {
    this.#isClosed = true;
  }

  /** For work on a number of items that a client chooses. */
  slices(): Slices {
    return new Slices(this.#context.clock, this.#context.endOfTurn);
  }
}
