import { expect } from 'vitest';

export function expectPositive(figures: Record<string, number>): void {
  for (const [name, figure] of Object.entries(figures)) {
    expect(figure, name).toSatisfy((value: number) => Number.isFinite(value) && value > 0);
  }
}
