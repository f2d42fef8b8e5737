/** How waiters, and what notifications did, look on the wire (contract W 14.6, 14.7). */
import type { Notified } from '../engine/runs/run-commands.ts';
import type { Waiter } from '../engine/runs/stores.ts';
import { redactConfigHeaders, redactedText } from '../protocol/redaction.ts';

type View = Record<string, unknown>;

/** What is redacted in its run is hidden here too. The deadline is in seconds. */
export function waiterView({ deadlineMs, record }: Waiter): View {
  const { wait, redact } = record.settings;
  if (!wait) throw new Error(`the record ${record.key} is not of a wait`);
  const { notified, timedOut, headers, timeoutHeaders, timeoutBody } = wait;
  return {
    url: notified.url,
    headers: redactConfigHeaders(headers, redact),
    deadline: Math.floor(deadlineMs / 1000),
    timeoutUrl: timedOut.url,
    timeoutBody:
      timeoutBody !== undefined && redact?.body ? redactedText(Buffer.from(timeoutBody, 'base64')) : timeoutBody,
    timeoutHeaders: redactConfigHeaders(timeoutHeaders, redact),
  };
}

/** Without a waiter the notification was only saved. */
export function notifiedView({ waiter, messageId, runId, runCreatedAtMs }: Notified): View {
  return {
    waiter: waiter && waiterView(waiter),
    messageId,
    workflowRunId: runId,
    workflowCreatedAt: runCreatedAtMs,
  };
}

/** Bytes of an answer up to which waiters are shown whole; what follows is shown without headers, and, past `end`, not at all. */
const SHOWN_BYTES = { whole: 16 * 1024 * 1024, end: 64 * 1024 * 1024 };

/** The array of what a notification did. However many it wakes, the answer stays within bounds (P10); all are woken. */
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
