/**
 * Calls that hold nothing and stay for a moment: what comes of their run meanwhile goes on in them, in place of a request
 * (contract K 3.9).
 */
import { takesCheckpoints } from '../../protocol/workflow/checkpoints.ts';
import type { RunKey } from '../../workflow/model.ts';
import { lineOf, type OriginLine } from '../lanes/origin-line.ts';
import type { Claimed, Message, Millis } from '../model.ts';
import type { Clock, Timer } from '../ports.ts';

/** A claimed message, and the bytes that its slot has. */
export interface Arrival {
  claimed: Claimed;
  reservedBytes: number;
}

export class Lingers {
  readonly #clock: Pick<Clock, 'startTimer'>;
  readonly #byRun = new Map<RunKey, Set<Linger>>();

  constructor(clock: Pick<Clock, 'startTimer'>) {
    this.#clock = clock;
  }

  get isEmpty(): boolean {
    return this.#byRun.size === 0;
  }

  /**
   * The call that delivered `message` stays until something comes, or the linger is ended: after `ms` at the latest. `left` is
   * called as soon as it is over.
   */
  begin(message: Message, ms: Millis, left: () => void): Linger {
    const runKey = message.settings.run?.key ?? 0;
    const ofRun = this.#byRun.get(runKey) ?? new Set();
    this.#byRun.set(runKey, ofRun);
    const linger: Linger = new Linger(message, () => {
      timer.cancel();
      if (!ofRun.delete(linger)) return;
      if (ofRun.size === 0) this.#byRun.delete(runKey);
      left();
    });
    const timer: Timer = this.#clock.startTimer(ms, () => linger.end());
    ofRun.add(linger);
    return linger;
  }

  /** Who waits for the message; `undefined`: it goes out in a request. */
  find({ message }: Claimed): Linger | undefined {
    const { run } = message.settings;
    if (this.isEmpty || !run || !takesCheckpoints(run)) return undefined;
    const [first] = this.#byRun.get(run.key) ?? [];
    return first;
  }

  /** Ends those whose calls are on lines that match. */
  end(matches: (line: OriginLine) => boolean): void {
    const all = [...this.#byRun.values()].flatMap((ofRun) => [...ofRun]);
    for (const linger of all) if (matches(linger.line)) linger.end();
  }
}

export class Linger {
  readonly line: OriginLine;
  /** What has come; `undefined`: nothing has. */
  readonly over: Promise<Arrival | undefined>;
  readonly #resolve: (arrival: Arrival | undefined) => void;
  readonly #leave: () => void;

  constructor({ projectId, origin }: Message, leave: () => void) {
    this.line = lineOf(projectId, origin);
    this.#leave = leave;
    const { promise, resolve } = Promise.withResolvers<Arrival | undefined>();
    this.over = promise;
    this.#resolve = resolve;
  }

  hand(arrival: Arrival): void {
    this.#leave();
    this.#resolve(arrival);
  }

  /** Nothing has come. Does nothing once it is over. */
  end(): void {
    this.#leave();
    this.#resolve(undefined);
  }
}
