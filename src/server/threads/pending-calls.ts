/** Who waits for the answer to which question? For questions that go from one thread to another. */
export class PendingCalls {
  readonly #waiting = new Map<number, { resolve: () => void; reject: (error: Error) => void }>();
  #lastId = 0;

  /** Resolves once `answer` is called with the id that `send` was given. */
  ask(send: (id: number) => void): Promise<void> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      send(id);
    });
  }

  answer(id: number, failure?: string): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (failure === undefined) waiting?.resolve();
    else waiting?.reject(new Error(failure));
  }

  /** Nobody is there any more who could answer otherwise. */
  answerAll(): void {
    for (const id of this.#waiting.keys()) this.answer(id);
  }
}
