/**
 * Bounds the memory of large responses (P10). A response waits until memory is free. Projects share the memory and are
 * served round-robin. While another project waits, a client that reads slowly is cut off, so that the client blocks no
 * others (P9).
 */
import type { Millis, ProjectId } from '../../engine/model.ts';
import type { Clock } from '../../engine/ports.ts';
import { ClientDisconnected } from '../requests/request-body.ts';
import type { ApiResponse } from '../response.ts';
import { MemoryBudget } from './memory-budget.ts';

/** Maximum time to send a response while other projects wait for its memory: enough for 50 MiB at 14 Mbit/s. */
const SEND_LIMIT_MS = 30_000;

/** The memory that is reserved for a response. */
export interface MemoryReservation {
  /** Aborts when another project waits for the memory, and `SEND_LIMIT_MS` have passed. */
  cutOff: AbortSignal;
  /** Changes the reservation to `bytes`, even if that exceeds the free memory. */
  resize: (bytes: number) => void;
  /** Frees the memory. Call this exactly once. */
  release: () => void;
}

interface QueuedResponse {
  bytes: number;
  sinceMs: Millis;
  start: (reservation: MemoryReservation) => void;
}

export class ResponseQueue {
  readonly #budget: MemoryBudget;
  readonly #clock: Clock;
  /** The waiting responses of each project, in order of arrival. The projects are in the order of the rotation. */
  readonly #waiting = new Map<ProjectId, QueuedResponse[]>();
  /** The abort controllers of responses that were not sent within `SEND_LIMIT_MS`. */
  readonly #overdue = new Set<AbortController>();

  constructor(bytesMax: number, clock: Clock) {
    this.#budget = new MemoryBudget(bytesMax);
    this.#clock = clock;
  }

  /**
   * Resolves when there is memory for `bytes`, or when no other response has memory. Rejects with `ClientDisconnected` if
   * `hangUp` aborts first.
   */
  reserve(projectId: ProjectId, bytes: number, hangUp: AbortSignal): Promise<MemoryReservation> {
    if (hangUp.aborted) return Promise.reject(new ClientDisconnected());
    return new Promise((resolve, reject) => {
      const queued = { bytes, sinceMs: this.#clock.elapsedMs, start: resolve };
      const queue = this.#waiting.get(projectId);
      if (queue) queue.push(queued);
      else this.#waiting.set(projectId, [queued]);
      hangUp.addEventListener('abort', () => {
        this.#remove(projectId, queued);
        reject(new ClientDisconnected());
        this.#startNext();
      });
      this.#startNext();
    });
  }

  /**
   * Reserves `bytes`, the maximum length of a response, calls `make`, and reduces the reservation to the response's length. The
   * memory is freed when the response is sent. Rejects like `reserve`.
   */
  async runWithMemory(
    projectId: ProjectId,
    bytes: number,
    hangUp: AbortSignal,
    make: () => ApiResponse | Promise<ApiResponse>,
  ): Promise<ApiResponse> {
    const { cutOff, resize, release: onSent } = await this.reserve(projectId, bytes, hangUp);
    try {
      const response = await make();
      resize(response.json.length);
      return { ...response, onSent, cutOff };
    } catch (error) {
      onSent();
      throw error;
    }
  }

  #startNext(): void {
    for (const [projectId, [first]] of this.#waiting) {
      if (!first) {
        this.#waiting.delete(projectId);
      } else if (this.#budget.hasCapacity(projectId, first.bytes)) {
        this.#remove(projectId, first);
        this.#moveToEnd(projectId);
        first.start(this.#start(projectId, first.bytes));
      } else if (this.#budget.bytesOf(projectId) === 0) {
        for (const cutOff of this.#overdue) cutOff.abort();
        // Other projects may overtake a waiting response, but only for a limited time.
        if (this.#clock.elapsedMs - first.sinceMs >= SEND_LIMIT_MS) return;
      }
      // If the project has memory, it waits only for its own responses, and other projects are not affected.
    }
  }

  #remove(projectId: ProjectId, queued: QueuedResponse): void {
    const queue = this.#waiting.get(projectId) ?? [];
    const at = queue.indexOf(queued);
    if (at >= 0) queue.splice(at, 1);
  }

  #moveToEnd(projectId: ProjectId): void {
    const queue = this.#waiting.get(projectId);
    this.#waiting.delete(projectId);
    if (queue) this.#waiting.set(projectId, queue);
  }

  #start(projectId: ProjectId, bytes: number): MemoryReservation {
    let reserved = bytes;
    this.#budget.reserve(projectId, reserved);
    const cutOff = new AbortController();
    const onOverdue = (): void => {
      this.#overdue.add(cutOff);
      this.#startNext();
    };
    const timer = this.#clock.startTimer(SEND_LIMIT_MS, onOverdue, 'outside');
    const resize = (needed: number): void => {
      this.#budget.reserve(projectId, needed - reserved);
      reserved = needed;
      this.#startNext();
    };
    const release = (): void => {
      timer.cancel();
      this.#overdue.delete(cutOff);
      this.#budget.release(projectId, reserved);
      this.#moveToEnd(projectId);
      this.#startNext();
    };
    return { cutOff: cutOff.signal, resize, release };
  }
}
