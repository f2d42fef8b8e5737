/** How does what is saved in several transactions go out together? */
import type { BacklogKey } from '../lanes/backlog-key.ts';
import type { DeliverySlots } from '../messages/intake.ts';

/**
 * In place of a worker's slots: what is saved waits in the backlogs of its origins, and the worker does not look there before
 * `open`. On a shared database other workers may.
 */
export class DeferredSlots implements DeliverySlots {
  readonly worker = '';
  readonly #noteForWorker: (backlog: BacklogKey) => void;
  readonly #backlogs = new Set<BacklogKey>();
  #isOpen = false;

  constructor(noteForWorker: (backlog: BacklogKey) => void) {
    this.#noteForWorker = noteForWorker;
  }

  /** From now on what is saved may go out at once. */
  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    for (const backlog of this.#backlogs) this.#noteForWorker(backlog);
  }

  tryReserve(): 'wait' {
    return 'wait';
  }

  noteWaitingBacklog(backlog: BacklogKey): void {
    if (this.#isOpen) this.#noteForWorker(backlog);
    else this.#backlogs.add(backlog);
  }

  giveBack(): void {}
  start(): void {}
  noteDue(): void {}
}
