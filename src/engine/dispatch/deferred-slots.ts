/** How does what is saved in several transactions go out together? */
import type { OriginLine } from '../lanes/origin-line.ts';
import type { DeliverySlots } from '../messages/intake.ts';

/**
 * In place of a worker's slots: what is saved waits in the lines of its origins, and the worker does not look there before
 * `open`. On a shared database other workers may.
 */
export class DeferredSlots implements DeliverySlots {
  readonly worker = '';
  readonly #noteForWorker: (line: OriginLine) => void;
  readonly #lines = new Set<OriginLine>();
  #isOpen = false;

  constructor(noteForWorker: (line: OriginLine) => void) {
    this.#noteForWorker = noteForWorker;
  }

  /** From now on what is saved may go out at once. */
  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    for (const line of this.#lines) this.#noteForWorker(line);
  }

  tryReserve(): 'wait' {
    return 'wait';
  }

  noteWaitingLine(line: OriginLine): void {
    if (this.#isOpen) this.#noteForWorker(line);
    else this.#lines.add(line);
  }

  giveBack(): void {}
  start(): void {}
  noteDue(): void {}
}
