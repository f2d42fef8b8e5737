/**
 * Saves the results of a group whose plans this call owns. Results that finish during a save are saved together. A saved
 * result needs no delivery once a later result is saved.
 */
import { type Call, isRejected, type Token } from './call.ts';
import type { Step } from './types.ts';

interface PendingResult {
  plan: Token;
  result: Step;
  resolve: () => void;
  reject: (error: unknown) => void;
}

export class GroupSaver {
  readonly #call: Call;
  /** Tokens of the latest saved results. */
  tokens: Token[] = [];
  /** Whether the call owns the latest entry, so that it may continue after this entry. */
  ownsLast = false;
  #pending: PendingResult[] = [];
  #isSaving = false;

  constructor(call: Call) {
    this.#call = call;
  }

  /** Resolves when the result is saved. */
  save(plan: Token, result: Step): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ plan, result, resolve, reject });
      if (!this.#isSaving) void this.#saveAll();
    });
  }

  async #saveAll(): Promise<void> {
    this.#isSaving = true;
    while (this.#pending.length > 0) await this.#saveBatch(this.#pending.splice(0));
    this.#isSaving = false;
  }

  async #saveBatch(batch: PendingResult[]): Promise<void> {
    const done = [...batch.map(({ plan }) => plan), ...this.tokens];
    const append = batch.map(({ result }) => ({ step: result }));
    try {
      const entries = await this.#call.checkpoint(done, append);
      this.tokens = entries.flatMap(({ token }) => token ?? []);
      this.ownsLast = entries.at(-1)?.token !== undefined;
      for (const { resolve } of batch) resolve();
    } catch (error) {
      // One result may be too large while the others are not.
      if (batch.length > 1 && isRejected(error)) for (const each of batch) await this.#saveBatch([each]);
      else for (const { reject } of batch) reject(error);
    }
  }
}
