/**
 * Passes spans on to a collector, in a thread of its own: what the packages of OpenTelemetry cost, and a collector that is slow
 * or away, hold up no message. So many spans wait at most; further ones are dropped, and counted.
 */
import type { Change, Claimed, Message, Millis, NewMessage, Outcome } from '../../engine/model.ts';
import type { EndedRun, Machine, Observer, Timer } from '../../engine/ports.ts';
import type { ExporterReply, ExporterThread } from './exporter-thread.ts';
import { attemptSpans, publishSpan, runSpan, type Span, settleSpans, waitForEventSpan } from './spans.ts';

/** Spans that wait here or with the collector; about a kilobyte each. */
const WAITING_MAX = 16_384;
/** Spans of one request to the collector. */
const BATCH = 512;
/** How long a span waits for others to go with it. */
const GATHER_MS = 500;
/** At the end, what is left gets so long to reach the collector. */
const LAST_MS = 2_000;

interface RecorderOptions {
  /** Called with the first spans, and again should the thread have ended. */
  startThread: (onReply: (reply: ExporterReply) => void) => ExporterThread;
  /** Real time: spans go out whatever clock messages go by. */
  machine: Pick<Machine, 'startTimer'>;
  /** Some more spans did not reach the collector; `total` since the start. */
  onDropped: (reason: string, total: number) => void;
}

export class SpanRecorder implements Observer {
  readonly #options: RecorderOptions;
  readonly #counts = { exported: 0, dropped: 0 };
  #gathered: Span[] = [];
  /** Spans that the thread has and has not told of yet. */
  #withThread = 0;
  #thread: ExporterThread | undefined;
  #timer: Timer | undefined;
  #whenAnswered = (): void => {};

  constructor(options: RecorderOptions) {
    this.#options = options;
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
    if (this.#withThread > 0) {
      let limit: Timer | undefined;
      await new Promise<void>((resolve) => {
        this.#whenAnswered = resolve;
        limit = this.#options.machine.startTimer(LAST_MS, resolve);
      });
      limit?.cancel();
    }
    await this.#thread?.end();
  }

  #add(span: Span | undefined): void {
    if (!span) return;
    if (this.#gathered.length + this.#withThread >= WAITING_MAX) {
      this.#counts.dropped += 1;
      if (this.#counts.dropped % BATCH === 1) this.#tellOfDropped('too many spans wait for the collector');
      return;
    }
    this.#gathered.push(span);
    if (this.#gathered.length >= BATCH) this.#flush();
    else this.#timer ??= this.#options.machine.startTimer(GATHER_MS, () => this.#flush());
  }

  #flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const spans = this.#gathered;
    if (spans.length === 0) return;
    this.#gathered = [];
    this.#withThread += spans.length;
    this.#thread ??= this.#options.startThread((reply) => this.#note(reply));
    // As text: cloning so many small objects takes this thread several times as long.
    this.#thread.post({ count: spans.length, json: JSON.stringify(spans) });
  }

  #note({ count = this.#withThread, failure, hasEnded }: ExporterReply): void {
    if (hasEnded) this.#thread = undefined;
    this.#withThread -= count;
    if (failure === undefined) this.#counts.exported += count;
    else {
      this.#counts.dropped += count;
      this.#tellOfDropped(failure);
    }
    if (this.#withThread === 0) this.#whenAnswered();
  }

  #tellOfDropped(reason: string): void {
    this.#options.onDropped(reason, this.#counts.dropped);
  }
}
