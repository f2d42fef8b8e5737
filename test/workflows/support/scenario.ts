/** A test with a server and an app of its own, which are closed behind it; then nothing may have gone wrong unnoticed. */
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
