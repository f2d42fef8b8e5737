/**
 * Buffers spans and sends the spans to a collector. Spans are queued as a few large encoded requests, so that the memory
 * of spans is counted exactly. A slow or unreachable collector delays no message: the queue is limited, and spans that do
 * not fit are dropped and counted.
 */
import type { Change, Claimed, Message, Millis, NewMessage, Outcome } from '../../engine/model.ts';
import type { EndedRun, Machine, Observer, Timer } from '../../engine/ports.ts';
import { type Sender, SpanRequest } from './otlp.ts';
import { attemptSpans, publishSpan, runSpan, type Span, settleSpans, waitForEventSpan } from './spans.ts';

/** Maximum bytes of queued requests, including the one that is being sent. A span has about 350 bytes. */
const QUEUE_BYTES_MAX = 16 * 2 ** 20;
/** A request is sent when the request has this many bytes, or this long after its first span. */
const REQUEST_BYTES = 2 ** 19;
const FLUSH_AFTER_MS = 500;
/** How long `close` waits for the remaining requests to be sent. */
const CLOSE_TIMEOUT_MS = 2_000;
/** Minimum interval between two reports of dropped spans. */
const REPORT_INTERVAL_MS = 1_000;

interface Collector {
  /** Resolves to the reason of a failure, or to undefined if the collector has received the request. */
  send(body: Uint8Array): Promise<string | undefined>;
  /** Fails the request in progress at once. */
  close(): void;
}

export class SpanRecorder implements Observer {
  readonly #collector: Collector;
  readonly #machine: Pick<Machine, 'startTimer'>;
  readonly #onDropped: (reason: string, total: number) => void;
  readonly #counts = { exported: 0, dropped: 0 };
  readonly #current: SpanRequest;
  /** The queued requests. The first request is being sent. */
  readonly #queue: { count: number; body: Uint8Array }[] = [];
  #queueBytes = 0;
  #sending: Promise<void> | undefined;
  #flushTimer: Timer | undefined;
  /** Runs while some dropped spans are not reported yet. */
  #reportTimer: Timer | undefined;
  #reason = '';

  /**
   * `machine` provides real time: spans are sent in real time even if messages follow another clock. `onDropped` reports
   * newly dropped spans, with the `total` since the start.
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
    this.#current = new SpanRequest(sender);
  }

  /** The numbers of spans since the start, by result. */
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

  /** Sends the remaining spans, and waits a limited time for the collector to receive them. */
  async close(): Promise<void> {
    this.#flush();
    const timeout = this.#machine.startTimer(CLOSE_TIMEOUT_MS, () => this.#collector.close());
    await this.#sending;
    timeout.cancel();
    this.#collector.close();
    if (this.#reportTimer) this.#reportDropped();
  }

  #add(span: Span | undefined): void {
    if (!span) return;
    if (this.#queueBytes + this.#current.bytes >= QUEUE_BYTES_MAX) {
      this.#drop(1, 'too many spans wait for the collector');
      return;
    }
    this.#current.add(span);
    if (this.#current.bytes >= REQUEST_BYTES) this.#flush();
    else this.#flushTimer ??= this.#machine.startTimer(FLUSH_AFTER_MS, () => this.#flush());
  }

  #flush(): void {
    this.#flushTimer?.cancel();
    this.#flushTimer = undefined;
    if (this.#current.count === 0) return;
    const request = this.#current.take();
    this.#queue.push(request);
    this.#queueBytes += request.body.length;
    this.#sending ??= this.#send();
  }

  async #send(): Promise<void> {
    for (let request = this.#queue[0]; request; request = this.#queue[0]) {
      const failure = await this.#collector.send(request.body);
      this.#queue.shift();
      this.#queueBytes -= request.body.length;
      if (failure === undefined) this.#counts.exported += request.count;
      else this.#drop(request.count, failure);
    }
    this.#sending = undefined;
  }

  #drop(count: number, reason: string): void {
    this.#counts.dropped += count;
    this.#reason = reason;
    this.#reportTimer ??= this.#machine.startTimer(REPORT_INTERVAL_MS, () => this.#reportDropped());
  }

  #reportDropped(): void {
    this.#reportTimer?.cancel();
    this.#reportTimer = undefined;
    this.#onDropped(this.#reason, this.#counts.dropped);
  }
}
