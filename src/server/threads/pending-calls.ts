/** Calls from one thread to another that wait for a result. */
export class PendingCalls<Value = void> {
  readonly #waiting = new Map<number, { resolve: (value?: Value) => void; reject: (error: Error) => void }>();
  #lastId = 0;

  /**
   * Resolves when `settle` or `settleAll` is called for the id that `send` was given, in the first case with its value;
   * rejects when that call has a failure.
   */
  ask(send: (id: number) => void): Promise<Value | undefined> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      send(id);
    });
  }

  settle(id: number, { failure, value }: { failure?: string | undefined; value?: Value } = {}): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (failure === undefined) waiting?.resolve(value);
    else waiting?.reject(new Error(failure));
  }

  /** Resolves all pending calls without a result, because the other thread has exited. */
  settleAll(): void {
    for (const id of this.#waiting.keys()) this.settle(id);
  }
}
