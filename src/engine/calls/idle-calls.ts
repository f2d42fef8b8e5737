/**
 * Idle calls: they have no messages and wait for the next message of their run, which then continues in the call instead of in
 * a new request (contract K 3.9).
 */
import { takesCheckpoints } from '../../protocol/workflow/checkpoints.ts';
import type { RunKey } from '../../workflow/model.ts';
import { type BacklogKey, backlogKey, parseBacklogKey } from '../lanes/backlog-key.ts';
import type { InFlight } from '../lanes/in-flight.ts';
import type { Claimed, Message, Millis } from '../model.ts';
import type { Clock } from '../ports.ts';

export class IdleCalls {
  readonly #clock: Pick<Clock, 'startTimer'>;
  readonly #inFlight: InFlight;
  readonly #byRun = new Map<RunKey, Set<IdleCall>>();

  constructor(clock: Pick<Clock, 'startTimer'>, inFlight: InFlight) {
    this.#clock = clock;
    this.#inFlight = inFlight;
  }

  /** Keeps the call that delivered `message` open until its next message, for at most `ms` or until `hangUp` aborts. */
  begin(message: Message, ms: Millis, hangUp: AbortSignal | undefined): IdleCall {
    const runKey = message.settings.run?.key ?? 0;
    const ofRun = this.#byRun.get(runKey) ?? new Set();
    this.#byRun.set(runKey, ofRun);
    const end = () => idle.end();
    const timer = this.#clock.startTimer(ms, end);
    const idle = new IdleCall(backlogKey(message.projectId, message.origin), () => {
      if (!ofRun.delete(idle)) return;
      if (ofRun.size === 0) this.#byRun.delete(runKey);
      timer.cancel();
      hangUp?.removeEventListener('abort', end);
    });
    hangUp?.addEventListener('abort', end);
    ofRun.add(idle);
    return idle;
  }

  /** The idle call that waits for the message; `undefined`: the message is sent in a new request. */
  find({ message }: Claimed): IdleCall | undefined {
    const { run } = message.settings;
    if (!run || !takesCheckpoints(run)) return undefined;
    const [first] = this.#byRun.get(run.key) ?? [];
    return first;
  }

  endAll(): void {
    this.#end(() => true);
  }

  /** Ends the idle calls of a run that has ended. */
  endOf(runKey: RunKey): void {
    for (const linger of [...(this.#byRun.get(runKey) ?? [])]) linger.end();
  }

  /**
   * Ends idle calls whose slots other messages need (P9): messages in the backlogs of `waiting`, or, when this worker has no
   * free slot, any due message (`isDue`).
   */
  makeRoom(waiting: () => readonly BacklogKey[], isDue: () => boolean): void {
    if (this.#byRun.size === 0) return;
    const backlogs = waiting();
    if (this.#inFlight.isFull) {
      if (backlogs.length > 0 || isDue()) this.endAll();
      return;
    }
    for (const backlog of backlogs) {
      const held = this.#inFlight.limitReasonOf(backlog);
      const { projectId, origin } = parseBacklogKey(backlog);
      if (held === 'origin') this.#end((each) => parseBacklogKey(each).origin === origin);
      else if (held) this.#end((each) => parseBacklogKey(each).projectId === projectId);
    }
  }

  #end(matches: (backlog: BacklogKey) => boolean): void {
    const all = [...this.#byRun.values()].flatMap((ofRun) => [...ofRun]);
    for (const linger of all) if (matches(linger.backlog)) linger.end();
  }
}

export class IdleCall {
  readonly backlog: BacklogKey;
  /** The next message, which has a slot; `undefined`: the idle call ended without one. */
  readonly over: Promise<Claimed | undefined>;
  readonly #resolve: (claimed: Claimed | undefined) => void;
  readonly #leave: () => void;

  constructor(backlog: BacklogKey, leave: () => void) {
    this.backlog = backlog;
    this.#leave = leave;
    const { promise, resolve } = Promise.withResolvers<Claimed | undefined>();
    this.over = promise;
    this.#resolve = resolve;
  }

  hand(claimed: Claimed): void {
    this.#leave();
    this.#resolve(claimed);
  }

  /** Ends the idle call without a message. Does nothing once it is over. */
  end(): void {
    this.#leave();
    this.#resolve(undefined);
  }
}
