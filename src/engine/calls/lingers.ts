/**
 * Calls that hold nothing and stay for a moment: what comes of their run meanwhile goes on in them, in place of a request
 * (contract K 3.9).
 */
import { takesCheckpoints } from '../../protocol/workflow/checkpoints.ts';
import type { RunKey } from '../../workflow/model.ts';
import type { InFlight } from '../lanes/in-flight.ts';
import { lineOf, type OriginLine, readLine } from '../lanes/origin-line.ts';
import type { Claimed, Message, Millis } from '../model.ts';
import type { Clock } from '../ports.ts';

export class Lingers {
  readonly #clock: Pick<Clock, 'startTimer'>;
  readonly #inFlight: InFlight;
  readonly #byRun = new Map<RunKey, Set<Linger>>();

  constructor(clock: Pick<Clock, 'startTimer'>, inFlight: InFlight) {
    this.#clock = clock;
    this.#inFlight = inFlight;
  }

  /** The call that delivered `message` stays until something comes, for `ms` at most; not after `hangUp` aborts. */
  begin(message: Message, ms: Millis, hangUp: AbortSignal | undefined): Linger {
    const runKey = message.settings.run?.key ?? 0;
    const ofRun = this.#byRun.get(runKey) ?? new Set();
    this.#byRun.set(runKey, ofRun);
    const end = () => linger.end();
    const timer = this.#clock.startTimer(ms, end);
    const linger = new Linger(lineOf(message.projectId, message.origin), () => {
      if (!ofRun.delete(linger)) return;
      if (ofRun.size === 0) this.#byRun.delete(runKey);
      timer.cancel();
      hangUp?.removeEventListener('abort', end);
    });
    hangUp?.addEventListener('abort', end);
    ofRun.add(linger);
    return linger;
  }

  /** Who waits for the message; `undefined`: it goes out in a request. */
  find({ message }: Claimed): Linger | undefined {
    const { run } = message.settings;
    if (!run || !takesCheckpoints(run)) return undefined;
    const [first] = this.#byRun.get(run.key) ?? [];
    return first;
  }

  endAll(): void {
    this.#end(() => true);
  }

  /** Nothing more comes of the run: it has ended. */
  endOf(runKey: RunKey): void {
    for (const linger of [...(this.#byRun.get(runKey) ?? [])]) linger.end();
  }

  /**
   * Ends those whose slots would let others start (P9): what waits in the lines of `waiting`, or, as far as there is no
   * slot at all, what `isDue`.
   */
  makeRoom(waiting: () => readonly OriginLine[], isDue: () => boolean): void {
    if (this.#byRun.size === 0) return;
    const lines = waiting();
    if (this.#inFlight.isFull) {
      if (lines.length > 0 || isDue()) this.endAll();
      return;
    }
    for (const line of lines) {
      const held = this.#inFlight.whatHolds(line);
      const { projectId, origin } = readLine(line);
      if (held === 'origin') this.#end((each) => readLine(each).origin === origin);
      else if (held) this.#end((each) => readLine(each).projectId === projectId);
    }
  }

  #end(matches: (line: OriginLine) => boolean): void {
    const all = [...this.#byRun.values()].flatMap((ofRun) => [...ofRun]);
    for (const linger of all) if (matches(linger.line)) linger.end();
  }
}

export class Linger {
  readonly line: OriginLine;
  /** The message that has come, which has a slot; `undefined`: none has. */
  readonly over: Promise<Claimed | undefined>;
  readonly #resolve: (claimed: Claimed | undefined) => void;
  readonly #leave: () => void;

  constructor(line: OriginLine, leave: () => void) {
    this.line = line;
    this.#leave = leave;
    const { promise, resolve } = Promise.withResolvers<Claimed | undefined>();
    this.over = promise;
    this.#resolve = resolve;
  }

  hand(claimed: Claimed): void {
    this.#leave();
    this.#resolve(claimed);
  }

  /** Nothing has come. Does nothing once it is over. */
  end(): void {
    this.#leave();
    this.#resolve(undefined);
  }
}
