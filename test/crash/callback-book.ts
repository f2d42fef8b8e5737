/**
 * Whose callbacks came? Kept outside the server beside the ledger: which publishes asked to be told, and who was told.
 * The server's own logs say how many attempts it recorded; each must have been told once, by one message that ends.
 */
import type { FinalView } from './ledger.ts';
import { type Repetitions, repetitionsOf } from './repetitions.ts';

export type CallbackKind = 'callback' | 'failureCallback';

/** An attempt to deliver a callback. */
export interface Telling {
  kind: CallbackKind;
  sourceId: string;
  /** Retries made before the attempt that it tells of. */
  sourceRetried: number;
  /** The callback's own id, and its own retries. */
  messageId: string;
  retried: number;
  incarnation: number;
  /** What the endpoint answered. */
  status: number;
}

/** So many retries has every callback of the load. */
export const CALLBACK_RETRIES = 2;

/** Whether nothing follows from the answer to `telling`: it was taken, or it was the last attempt. */
export function isLastTelling({ status, retried }: Pick<Telling, 'status' | 'retried'>): boolean {
  return (status >= 200 && status < 300) || retried >= CALLBACK_RETRIES;
}

export interface CallbackVerdict extends Repetitions {
  /** Callbacks that were taken by their endpoint. */
  taken: number;
  /** Callbacks whose endpoint refused them for good. */
  buried: number;
  /** Recorded attempts, or deaths, of which nobody was told. */
  untold: string[];
  /** Told by two messages. */
  toldTwice: string[];
  /** Tells of what the logs do not have. */
  toldOfNothing: string[];
  /** Callbacks that neither were taken nor are in the DLQ. */
  lost: string[];
}

export class CallbackBook {
  readonly #wishes = new Map<string, readonly CallbackKind[]>();
  readonly #tellings: Telling[] = [];
  #taken = 0;
  #refusedForGood = 0;

  /** Callbacks that were taken so far, repeated ones included. */
  get taken(): number {
    return this.#taken;
  }

  /** Callbacks so far that nobody will take any more. */
  get refusedForGood(): number {
    return this.#refusedForGood;
  }

  /** The messages of `tag` ask for `kinds`. */
  asked(tag: string, kinds: readonly CallbackKind[]): void {
    this.#wishes.set(tag, kinds);
  }

  told(telling: Telling): void {
    this.#tellings.push(telling);
    if (telling.status < 300) this.#taken += 1;
    else if (isLastTelling(telling)) this.#refusedForGood += 1;
  }

  /** `tags` are those of all messages that anybody knows, by their ids. */
  judge(view: FinalView, tags: ReadonlyMap<string, string>): CallbackVerdict {
    const idsByFact = new Map<string, Set<string>>();
    for (const { kind, sourceId, sourceRetried, messageId } of this.#tellings) {
      const fact = factOf(kind, sourceId, sourceRetried);
      idsByFact.set(fact, (idsByFact.get(fact) ?? new Set()).add(messageId));
    }
    const facts = new Set(this.#facts(view, tags));
    const ids = new Set(this.#tellings.map(({ messageId }) => messageId));
    const taken = new Set(this.#tellings.filter(({ status }) => status < 300).map(({ messageId }) => messageId));
    const refused = [...ids].filter((id) => !taken.has(id));
    return {
      taken: taken.size,
      buried: refused.filter((id) => view.dead.has(id)).length,
      untold: [...facts].filter((fact) => !idsByFact.has(fact)),
      toldTwice: [...idsByFact].filter(([, told]) => told.size > 1).map(([fact, told]) => `${fact}: ${[...told]}`),
      toldOfNothing: [...idsByFact.keys()].filter((fact) => !facts.has(fact)),
      lost: refused.filter((id) => !view.dead.has(id)),
      ...repetitionsOf(this.#tellings),
    };
  }

  /** All that the server's logs say somebody is to be told of. */
  *#facts({ attempts, endings }: FinalView, tags: ReadonlyMap<string, string>): Generator<string> {
    for (const [id, tag] of tags) {
      const wishes = this.#wishes.get(tag) ?? [];
      const recorded = attempts.get(id) ?? 0;
      for (let retried = 0; retried < recorded && wishes.includes('callback'); retried += 1) {
        yield factOf('callback', id, retried);
      }
      const isDead = endings.get(id)?.includes('FAILED') === true;
      if (isDead && wishes.includes('failureCallback')) yield factOf('failureCallback', id, recorded - 1);
    }
  }
}

function factOf(kind: CallbackKind, sourceId: string, sourceRetried: number): string {
  return `${kind} of ${sourceId} retried ${sourceRetried}`;
}
