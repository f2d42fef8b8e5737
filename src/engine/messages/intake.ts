/**
 * How does a new message come into the store, and out to its endpoint? One way for all that make messages: each is drafted,
 * given a slot if it can go out at once, and saved; then what came through is set going, and the other slots go back.
 */
import { ApiError } from '../../protocol/errors.ts';
import { mintMessageId } from '../../protocol/ids.ts';
import type { FollowUp, NewMessage } from '../model.ts';
import type { Clock, Randomness } from '../ports.ts';
import { draftOfFollowUp } from '../runs/entries.ts';
import type { EngineSettings } from '../settings.ts';
import { Slices } from '../slices.ts';
import type { Numbers } from '../workers/numbers.ts';
import type { Draft } from './accept.ts';
import type { Saved } from './accepted.ts';
import { type DeliverySlots, dispatchSaved, place } from './placement.ts';

interface IntakeDeps {
  slots: DeliverySlots;
  numbers: Numbers;
  clock: Clock;
  randomness: Randomness;
  settings: Pick<EngineSettings, 'lazyFetchBytes'>;
  endOfTurn?: () => Promise<void>;
}

/** What a store answers says how each message was saved, in their order; `undefined` or nothing: it was not. */
type SavedOf<Answer> = (answer: Answer) => readonly (Saved | undefined)[];

export class Intake {
  readonly #deps: IntakeDeps;
  #isClosed = false;

  constructor(deps: IntakeDeps) {
    this.#deps = deps;
  }

  /** Each with a key and an id. Throws `StoreUnavailable`. */
  async draftsOf(follows: readonly FollowUp[]): Promise<Draft[]> {
    const { numbers, randomness, settings } = this.#deps;
    const firstKey = await numbers.take(follows.length);
    return follows.map((followUp, index) => {
      const key = firstKey + index;
      const id = mintMessageId(key, (count) => randomness.bytes(count));
      return draftOfFollowUp(followUp, { key, id }, settings.lazyFetchBytes);
    });
  }

  /**
   * Has `save` save the drafts, each with where it is to stand. Whatever becomes of that, no slot is left reserved. Answers
   * and throws as `save` does, and throws `StoreUnavailable` before it. `mayBeAlone`: as `dispatchSaved` has it.
   * `isOfClient`: it is refused once the server shuts down, with `ApiError` 503.
   */
  async save<Answer>(
    drafts: readonly Draft[],
    save: (newMessages: NewMessage[]) => Promise<Answer>,
    savedOf: SavedOf<Answer>,
    { mayBeAlone = true, isOfClient = false }: { mayBeAlone?: boolean; isOfClient?: boolean } = {},
  ): Promise<Answer> {
    if (drafts.length === 0) return save([]);
    const { slots } = this.#deps;
    const newMessages = await this.#place(drafts);
    let saved: readonly (Saved | undefined)[] = [];
    try {
      if (isOfClient && this.#isClosed) throw new ApiError('unavailable', 'the server is shutting down');
      const answer = await save(newMessages);
      saved = savedOf(answer);
      return answer;
    } finally {
      await this.slices().map(newMessages, (entry, index) => dispatchSaved(entry, saved[index], slots, mayBeAlone));
    }
  }

  /** The same for what a client asks for. */
  admit<Answer>(
    drafts: readonly Draft[],
    save: (newMessages: NewMessage[]) => Promise<Answer>,
    savedOf: SavedOf<Answer>,
  ): Promise<Answer> {
    return this.save(drafts, save, savedOf, { isOfClient: true });
  }

  /** From now on no client is admitted. */
  close(): void {
    this.#isClosed = true;
  }

  /** For work on as many items as a client likes. */
  slices(): Slices {
    return new Slices(this.#deps.clock, this.#deps.endOfTurn);
  }

  async #place(drafts: readonly Draft[]): Promise<NewMessage[]> {
    const { numbers, slots } = this.#deps;
    const firstToken = await numbers.take(drafts.length);
    return this.slices().map(drafts, (draft, index) => place(draft, firstToken + index, slots));
  }
}
