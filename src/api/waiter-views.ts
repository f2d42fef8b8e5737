/** How waiters and notifications look on the wire (contract W 14.6, 14.7). */
import type { Notified } from '../engine/runs/run-commands.ts';
import type { Waiter } from '../engine/runs/stores.ts';
import { redactConfigHeaders, redactedText } from '../protocol/redaction.ts';
import { shownUrl } from '../protocol/shown-url.ts';

type View = Record<string, unknown>;

/** Shows a waiter with the redaction of its run. The deadline is in seconds. */
export function waiterView({ deadlineMs, record }: Waiter): View {
  const { wait, redact } = record.settings;
  if (!wait) throw new Error(`the record ${record.key} is not of a wait`);
  const { notified, timedOut, headers, timeoutHeaders, timeoutBody } = wait;
  return {
    url: shownUrl(notified.url),
    headers: redactConfigHeaders(headers, redact),
    deadline: Math.floor(deadlineMs / 1000),
    timeoutUrl: shownUrl(timedOut.url),
    timeoutBody:
      timeoutBody !== undefined && redact?.body ? redactedText(Buffer.from(timeoutBody, 'base64')) : timeoutBody,
    timeoutHeaders: redactConfigHeaders(timeoutHeaders, redact),
  };
}

/** Without a waiter, the notification was only saved as a pending event. */
export function notifiedView({ waiter, messageId, runId, runCreatedAtMs }: Notified): View {
  return {
    waiter: waiter && waiterView(waiter),
    messageId,
    workflowRunId: runId,
    workflowCreatedAt: runCreatedAtMs,
  };
}

/**
 * Up to `whole` bytes of an answer, waiters are shown whole; up to `end` bytes, without headers; after that, not at
 * all.
 */
const SHOWN_BYTES = { whole: 16 * 1024 * 1024, end: 64 * 1024 * 1024 };

/**
 * The answer to a notification, as a JSON array. A notification may wake any number of runs: all are woken, but the
 * answer stays within bounds (P10).
 */
export class NotifiedList {
  readonly #elements: string[] = [];
  #bytes = 0;

  add(piece: readonly Notified[]): void {
    for (const notified of piece) {
      if (this.#bytes > SHOWN_BYTES.end) return;
      const view = notifiedView(notified);
      const { waiter } = view as { waiter: View };
      const isWhole = this.#bytes <= SHOWN_BYTES.whole;
      const element = JSON.stringify(
        isWhole ? view : { ...view, waiter: { ...waiter, headers: {}, timeoutHeaders: {} } },
      );
      this.#elements.push(element);
      this.#bytes += element.length;
    }
  }

  get json(): string {
    return `[${this.#elements.join(',')}]`;
  }
}
