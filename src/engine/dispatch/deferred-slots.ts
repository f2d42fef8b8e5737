/** Delivery slots for messages that are saved in several transactions and must be sent only after the last one. */
import type { BacklogKey } from '../lanes/backlog-key.ts';
import type { DeliverySlots } from '../messages/intake.ts';

/**
 * Stands in for the slots of a worker while new messages must not be sent yet. These messages are saved into their
 * endpoint backlogs, and `open` notifies the worker of the backlogs. On a shared database, other workers may claim the
 * messages earlier.
 */
export class DeferredSlots implements DeliverySlots {
  readonly worker = '';
  readonly #noteForWorker: (backlog: BacklogKey) => void;
  readonly #backlogs = new Set<BacklogKey>();
  #isOpen = false;

  constructor(noteForWorker: (backlog: BacklogKey) => void) {
    this.#noteForWorker = noteForWorker;
  }

  /** Allows the saved messages, and all messages that are saved later, to be sent. */
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
