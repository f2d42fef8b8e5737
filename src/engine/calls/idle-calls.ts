/**
 * The idle calls of this worker. An idle call has no messages and waits for the next message of its run, which then continues in
 * the call instead of in a new request (contract K 3.9).
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
  start(message: Message, ms: Millis, hangUp: AbortSignal | undefined): IdleCall {
    const runKey = message.settings.run?.key ?? 0;
    const idleCalls = this.#byRun.get(runKey) ?? new Set();
    this.#byRun.set(runKey, idleCalls);
    const end = () => idle.end();
    const timer = this.#clock.startTimer(ms, end);
    const idle = new IdleCall(backlogKey(message.projectId, message.origin), () => {
      if (!idleCalls.delete(idle)) return;
      if (idleCalls.size === 0) this.#byRun.delete(runKey);
      timer.cancel();
      hangUp?.removeEventListener('abort', end);
    });
    hangUp?.addEventListener('abort', end);
    idleCalls.add(idle);
    return idle;
  }

  /** Returns the idle call that waits for the message, or undefined if the message must be sent in a new request. */
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
    for (const idleCall of [...(this.#byRun.get(runKey) ?? [])]) idleCall.end();
  }

  /**
   * Ends idle calls whose slots other messages need (P9): messages in the `waitingBacklogs`, or, when this worker has no
   * free slot, any due message (`isDue`).
   */
  freeSlots(waitingBacklogs: () => readonly BacklogKey[], isDue: () => boolean): void {
    if (this.#byRun.size === 0) return;
    const backlogs = waitingBacklogs();
    if (this.#inFlight.isFull) {
      if (backlogs.length > 0 || isDue()) this.endAll();
      return;
    }
    for (const backlog of backlogs) {
      const limitReason = this.#inFlight.limitReasonOf(backlog);
      const { projectId, origin } = parseBacklogKey(backlog);
      if (limitReason === 'origin') this.#end((each) => parseBacklogKey(each).origin === origin);
      else if (limitReason) this.#end((each) => parseBacklogKey(each).projectId === projectId);
    }
  }

  #end(matches: (backlog: BacklogKey) => boolean): void {
    const all = [...this.#byRun.values()].flatMap((idleCalls) => [...idleCalls]);
    for (const idleCall of all) if (matches(idleCall.backlog)) idleCall.end();
  }
}

export class IdleCall {
  readonly backlog: BacklogKey;
  /** Resolves to the next message, which has a slot, or to undefined if the idle call ended without a message. */
  readonly next: Promise<Claimed | undefined>;
  readonly #resolve: (claimed: Claimed | undefined) => void;
  readonly #remove: () => void;

  constructor(backlog: BacklogKey, remove: () => void) {
    this.backlog = backlog;
    this.#remove = remove;
    const { promise, resolve } = Promise.withResolvers<Claimed | undefined>();
    this.next = promise;
    this.#resolve = resolve;
  }

  /** Ends the idle call with its next message. */
  handOver(claimed: Claimed): void {
    this.#remove();
    this.#resolve(claimed);
  }

  /** Ends the idle call without a message. Does nothing once it has ended. */
  end(): void {
    this.#remove();
    this.#resolve(undefined);
  }
}
