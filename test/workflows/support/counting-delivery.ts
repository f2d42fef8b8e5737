/** How many attempts are under way, and were made? A delivery around the real one. */
import type { Claimed, Outcome } from '../../../src/engine/model.ts';
import type { Delivery } from '../../../src/engine/ports.ts';

export class CountingDelivery implements Delivery {
  readonly #delivery: Delivery;
  #underWay = 0;
  #made = 0;

  constructor(delivery: Delivery) {
    this.#delivery = delivery;
  }

  get underWay(): number {
    return this.#underWay;
  }

  get made(): number {
    return this.#made;
  }

  async attempt(claimed: Claimed, signal: AbortSignal): Promise<Outcome> {
    this.#underWay += 1;
    this.#made += 1;
    try {
      return await this.#delivery.attempt(claimed, signal);
    } finally {
      this.#underWay -= 1;
    }
  }

  close(): Promise<void> {
    return this.#delivery.close();
  }
}
