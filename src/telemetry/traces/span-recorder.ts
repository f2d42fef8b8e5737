/**
 * Passes spans on to a collector. Spans wait for it as a few long encoded requests, so that their memory is counted exactly.
 * A slow or unreachable collector delays no message: the waiting requests are bounded, and further spans are dropped and counted.
 */
import type { Change, Claimed, Message, Millis, NewMessage, Outcome } from '../../engine/model.ts';
import type { EndedRun, Machine, Observer, Timer } from '../../engine/ports.ts';
import { type Sender, SpanRequest } from './otlp.ts';
import { attemptSpans, publishSpan, runSpan, type Span, settleSpans, waitForEventSpan } from './spans.ts';

/** What waits here or is on its way to the collector; a span has some 350 bytes. */
const WAITING_BYTES_MAX = 16 * 2 ** 20;
/** A request to the collector has this much, or what has gathered for so long. */
const REQUEST_BYTES = 2 ** 19;
const GATHER_MS = 500;
/** At the end, what is left gets so long to reach the collector. */
const LAST_MS = 2_000;
/** Minimum interval between two reports of dropped spans. */
const TELL_MS = 1_000;

interface Collector {
  /** Resolves to the reason why the collector did not receive it; `undefined`: it did. */
  send(body: Uint8Array): Promise<string | undefined>;
  /** Lets the request in progress fail at once. */
  close(): void;
}

export class SpanRecorder implements Observer {
  readonly #collector: Collector;
  readonly #machine: Pick<Machine, 'startTimer'>;
  readonly #onDropped: (reason: string, total: number) => void;
  readonly #counts = { exported: 0, dropped: 0 };
  readonly #gathered: SpanRequest;
  /** Requests that are to be sent; the first is under way. */
  readonly #waiting: { count: number; body: Uint8Array }[] = [];
  #waitingBytes = 0;
  #sending: Promise<void> | undefined;
  #gathering: Timer | undefined;
  /** Runs while there are dropped spans that were not reported. */
  #telling: Timer | undefined;
  #reason = '';

  /**
   * `machine`: real time, since spans are sent whichever clock messages follow. `onDropped`: some more spans did not reach the
   * collector; `total` since the start.
   */
  constructor(
    sender: Sender,
    collector: Collector,
    machine: Pick<Machine, 'startTimer'>,
    onDropped: (reason: string, total: number) => void,
  ) {
    this.#collector = collector;
    this.#machine = machine;
    this.#onDropped = onDropped;
    this.#gathered = new SpanRequest(sender);
  }

  /** Spans so far, by what became of them. */
  get counts(): Readonly<{ exported: number; dropped: number }> {
    return this.#counts;
  }

  accepted(newMessage: NewMessage, atMs: Millis): void {
    this.#add(publishSpan(newMessage, atMs));
  }

  attempted(claimed: Claimed, outcome: Outcome, endedAtMs: Millis): void {
    for (const span of attemptSpans(claimed, outcome, endedAtMs)) this.#add(span);
  }

  settled(claimed: Claimed, change: Change, atMs: Millis): void {
    for (const span of settleSpans(claimed, change, atMs)) this.#add(span);
  }

  runEnded(run: EndedRun, state: 'RUN_SUCCESS' | 'RUN_CANCELED', atMs: Millis): void {
    this.#add(runSpan(run, state, atMs));
  }

  woken(record: Message, by: 'event' | 'deadline', atMs: Millis): void {
    this.#add(waitForEventSpan(record, by, atMs));
  }

  /** Sends what is left, and waits a moment for it to arrive. */
  async close(): Promise<void> {
    this.#flush();
    const limit = this.#machine.startTimer(LAST_MS, () => this.#collector.close());
    await this.#sending;
    limit.cancel();
    this.#collector.close();
    if (this.#telling) this.#tellOfDropped();
  }

  #add(span: Span | undefined): void {
    if (!span) return;
    if (this.#waitingBytes + this.#gathered.bytes >= WAITING_BYTES_MAX) {
      this.#drop(1, 'too many spans wait for the collector');
      return;
    }
    this.#gathered.add(span);
    if (this.#gathered.bytes >= REQUEST_BYTES) this.#flush();
    else this.#gathering ??= this.#machine.startTimer(GATHER_MS, () => this.#flush());
  }

  #flush(): void {
    this.#gathering?.cancel();
    this.#gathering = undefined;
    if (this.#gathered.count === 0) return;
    const request = this.#gathered.take();
    this.#waiting.push(request);
    this.#waitingBytes += request.body.length;
    this.#sending ??= this.#send();
  }

  async #send(): Promise<void> {
    for (let request = this.#waiting[0]; request; request = this.#waiting[0]) {
      const failure = await this.#collector.send(request.body);
      this.#waiting.shift();
      this.#waitingBytes -= request.body.length;
      if (failure === undefined) this.#counts.exported += request.count;
      else this.#drop(request.count, failure);
    }
    this.#sending = undefined;
  }

  #drop(count: number, reason: string): void {
    this.#counts.dropped += count;
    this.#reason = reason;
    this.#telling ??= this.#machine.startTimer(TELL_MS, () => this.#tellOfDropped());
  }

  #tellOfDropped(): void {
    this.#telling?.cancel();
    this.#telling = undefined;
    this.#onDropped(this.#reason, this.#counts.dropped);
  }
}
