/**
 * Saves the results of a group whose plans this call owns. Results that finish during a save are saved together. A saved
 * result needs no delivery once a later one is saved.
 */
import { type Call, isRefused, type Token } from './call.ts';
import type { Step } from './types.ts';

interface Waiting {
  plan: Token;
  result: Step;
  kept: () => void;
  refused: (error: unknown) => void;
}

export class Keeper {
  readonly #call: Call;
  /** Tokens of the latest saved results. */
  held: Token[] = [];
  /** Whether the call owns the latest entry, and so may continue after it. */
  holdsLast = false;
  #waiting: Waiting[] = [];
  #isKeeping = false;

  constructor(call: Call) {
    this.#call = call;
  }

  /** Resolves when the result is saved. */
  keep(plan: Token, result: Step): Promise<void> {
    return new Promise((kept, refused) => {
      this.#waiting.push({ plan, result, kept, refused });
      if (!this.#isKeeping) void this.#keepAll();
    });
  }

  async #keepAll(): Promise<void> {
    this.#isKeeping = true;
    while (this.#waiting.length > 0) await this.#keepTogether(this.#waiting.splice(0));
    this.#isKeeping = false;
  }

  async #keepTogether(together: Waiting[]): Promise<void> {
    const done = [...together.map(({ plan }) => plan), ...this.held];
    const append = together.map(({ result }) => ({ step: result }));
    try {
      const entries = await this.#call.checkpoint(done, append);
      this.held = entries.flatMap(({ token }) => token ?? []);
      this.holdsLast = entries.at(-1)?.token !== undefined;
      for (const { kept } of together) kept();
    } catch (error) {
      // One result may be too large while the others are not.
      if (together.length > 1 && isRefused(error)) for (const each of together) await this.#keepTogether([each]);
      else for (const { refused } of together) refused(error);
    }
  }
}
