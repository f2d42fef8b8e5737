/** Calls from one thread to another that wait for a response. */
export class PendingCalls<Value = void> {
  readonly #pending = new Map<number, { resolve: (value?: Value) => void; reject: (error: Error) => void }>();
  #lastId = 0;

  /**
   * Calls `send` with a new id. When `settle` is called with this id, resolves to the value or rejects with the failure
   * that `settle` got. When `settleAll` is called, resolves to undefined.
   */
  call(send: (id: number) => void): Promise<Value | undefined> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      send(id);
    });
  }

  settle(id: number, { failure, value }: { failure?: string | undefined; value?: Value } = {}): void {
    const call = this.#pending.get(id);
    this.#pending.delete(id);
    if (failure === undefined) call?.resolve(value);
    else call?.reject(new Error(failure));
  }

  /** Resolves all pending calls without a value, because the other thread has exited. */
  settleAll(): void {
    for (const id of this.#pending.keys()) this.settle(id);
  }
}
