/**
 * Keeps the results of a group whose plans this call holds. Those that finish together go together; a result that is not
 * the last one needs nothing more once the next is kept.
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
  /** Results that are kept, and whose messages the call holds. */
  held: Token[] = [];
  /** Whether the call holds the latest entry, and so may go on after it. */
  holdsLast = false;
  #waiting: Waiting[] = [];
  #isKeeping = false;

  constructor(call: Call) {
    this.#call = call;
  }

  /** Resolves when it is kept. */
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
      // One of them may be refused without the others.
      if (together.length > 1 && isRefused(error)) for (const each of together) await this.#keepTogether([each]);
      else for (const { refused } of together) refused(error);
    }
  }
}
