/**
 * The books of the lanes, kept outside the server: who entered which queue and key, what was asked of the lanes, and when
 * attempts began and ended at the endpoints. One list in the order in which things happened here; `lane-checks.ts` reads it.
 */
import type { Arrival } from './ledger.ts';

export interface Lane {
  kind: 'queue' | 'key';
  name: string;
  parallelism?: number;
  /** Starts in a period. */
  rate?: number;
  periodMs?: number;
}

/** What the load knows of a message before it is published. */
export interface Entrant {
  tag: string;
  lanes: readonly Lane[];
  maxRetries: number;
  /** Told of every attempt: the message is not finished before its callbacks are (contract M 9.5). */
  hasCallback: boolean;
}

export type LaneEvent =
  | { kind: 'entered'; entrant: Entrant }
  /** An attempt is whole at the endpoint. */
  | { kind: 'arrived'; attempt: Arrival; atMs: number }
  /** Its answer is about to be written: whatever the server makes of it comes later. */
  | { kind: 'answered'; attempt: Arrival }
  /** The last attempt of a callback is about to be answered. */
  | { kind: 'told'; sourceId: string; sourceRetried: number }
  /** A pause was acknowledged. */
  | { kind: 'paused'; lane: Lane; incarnation: number }
  /** The end of a pause is about to be asked for. */
  | { kind: 'resumed'; lane: Lane }
  /** A delete was acknowledged. */
  | { kind: 'deleted'; lane: Lane; incarnation: number };

export class LaneBook {
  readonly #events: LaneEvent[] = [];

  note(event: LaneEvent): void {
    this.#events.push(event);
  }

  events(): readonly LaneEvent[] {
    return this.#events;
  }
}
