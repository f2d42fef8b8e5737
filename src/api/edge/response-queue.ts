/**
 * Bounds the memory of large answers (P10): what finds no room waits. Projects share the room and take turns, and nobody
 * keeps it for long while others need it. So a client that reads slowly does not stop other projects (P9).
 */
import type { Millis, ProjectId } from '../../engine/model.ts';
import type { Clock } from '../../engine/ports.ts';
import { ClientDisconnected } from '../requests/request-body.ts';
import type { ApiResponse } from '../response.ts';
import { MemoryBudget } from './memory-budget.ts';

/** An answer has so long to be sent while others wait for its room: 50 MiB at 14 Mbit/s. */
const SEND_LIMIT_MS = 30_000;

/** The room that an answer has. */
export interface MemoryReservation {
  /** Aborts when another project waits for the room, and the client has had long enough. */
  cutOff: AbortSignal;
  /** Has room for `bytes` from now on. More than before is taken whether or not it is free. */
  resize: (bytes: number) => void;
  /** Gives the room back. Call it exactly once. */
  release: () => void;
}

interface QueuedResponse {
  bytes: number;
  sinceMs: Millis;
  begin: (turn: MemoryReservation) => void;
}

export class ResponseQueue {
  readonly #budget: MemoryBudget;
  readonly #clock: Clock;
  /** Of each project in order of arrival. The project whose latest turn began or ended first is first. */
  readonly #waiting = new Map<ProjectId, QueuedResponse[]>();
  /** Of answers that have had `TURN_MS`. */
  readonly #overdue = new Set<AbortController>();

  constructor(bytesMax: number, clock: Clock) {
    this.#budget = new MemoryBudget(bytesMax);
    this.#clock = clock;
  }

  /**
   * Resolves when there is room for `bytes`; one answer alone always has it. Rejects with `CallerGone` when `hangUp`
   * aborts first.
   */
  reserve(projectId: ProjectId, bytes: number, hangUp: AbortSignal): Promise<MemoryReservation> {
    if (hangUp.aborted) return Promise.reject(new ClientDisconnected());
    return new Promise((resolve, reject) => {
      const waiter = { bytes, sinceMs: this.#clock.elapsedMs, begin: resolve };
      const line = this.#waiting.get(projectId);
      if (line) line.push(waiter);
      else this.#waiting.set(projectId, [waiter]);
      hangUp.addEventListener('abort', () => {
        this.#remove(projectId, waiter);
        reject(new ClientDisconnected());
        this.#beginNext();
      });
      this.#beginNext();
    });
  }

  /**
   * What `make` answers once there is room for `bytes`, as many as it may have. Then it has the room that it needs until it
   * is sent. Rejects as `take` does.
   */
  async runWithMemory(
    projectId: ProjectId,
    bytes: number,
    hangUp: AbortSignal,
    make: () => ApiResponse | Promise<ApiResponse>,
  ): Promise<ApiResponse> {
    const { cutOff, resize, release: onSent } = await this.reserve(projectId, bytes, hangUp);
    try {
      const made = await make();
      resize(made.json.length);
      return { ...made, onSent, cutOff };
    } catch (error) {
      onSent();
      throw error;
    }
  }

  #beginNext(): void {
    for (const [projectId, [first]] of this.#waiting) {
      if (!first) {
        this.#waiting.delete(projectId);
      } else if (this.#budget.hasCapacity(projectId, first.bytes)) {
        this.#remove(projectId, first);
        this.#putLast(projectId);
        first.begin(this.#begin(projectId, first.bytes));
      } else if (this.#budget.bytesOf(projectId) === 0) {
        for (const cutOff of this.#overdue) cutOff.abort();
        // Those behind it may pass, but not for ever.
        if (this.#clock.elapsedMs - first.sinceMs >= SEND_LIMIT_MS) return;
      }
      // Otherwise the project waits for an answer of its own, which concerns no other.
    }
  }

  #remove(projectId: ProjectId, waiter: QueuedResponse): void {
    const line = this.#waiting.get(projectId) ?? [];
    const at = line.indexOf(waiter);
    if (at >= 0) line.splice(at, 1);
  }

  #putLast(projectId: ProjectId): void {
    const line = this.#waiting.get(projectId);
    this.#waiting.delete(projectId);
    if (line) this.#waiting.set(projectId, line);
  }

  #begin(projectId: ProjectId, bytes: number): MemoryReservation {
    let held = bytes;
    this.#budget.reserve(projectId, held);
    const cutOff = new AbortController();
    const onOverdue = (): void => {
      this.#overdue.add(cutOff);
      this.#beginNext();
    };
    const timer = this.#clock.startTimer(SEND_LIMIT_MS, onOverdue, 'outside');
    const resize = (needed: number): void => {
      this.#budget.reserve(projectId, needed - held);
      held = needed;
      this.#beginNext();
    };
    const end = (): void => {
      timer.cancel();
      this.#overdue.delete(cutOff);
      this.#budget.release(projectId, held);
      this.#putLast(projectId);
      this.#beginNext();
    };
    return { cutOff: cutOff.signal, resize, release: end };
  }
}
