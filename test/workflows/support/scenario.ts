/** A test with its own server and app. After it, both are closed, and an ignored option or an error of the app fails the test. */
import { test, vi } from 'vitest';
import { isWithOurs, withoutExceptions } from '../../library/ours.ts';
import { Service } from './service.ts';

interface Ground {
  /** Settings of the server, as flags. */
  flags: readonly string[];
  service: Service;
}

const grounded = test.extend<Ground>({
  flags: [],
  service: async ({ flags }, use) => {
    // Libraries write about each failure, which are what many scenarios are about.
    const spies = (['error', 'warn', 'log'] as const).map((level) => vi.spyOn(console, level).mockReturnValue());
    const service = await Service.open(flags);
    await use(service);
    await service.close();
    for (const spy of spies) spy.mockRestore();
  },
});

export const scenario: typeof grounded = isWithOurs(import.meta.url) ? withoutExceptions(grounded) : grounded;
