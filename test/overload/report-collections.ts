/**
 * Preloaded by a server under test, in each of its threads: fills the thread, and says on standard error when it has been
 * told to collect. What real requests leave would not do: the engine may collect that by itself before anybody looks.
 */
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { threadId } from 'node:worker_threads';

const FILLING_BYTES = 64 * 1024 * 1024;

/** Referred to for good, so that only being told to can be what collects. */
const filling = Buffer.alloc(FILLING_BYTES);
const observer = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { flags } = (entry as PerformanceEntry & { detail: { flags: number } }).detail;
    const isForced = (flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0;
    if (isForced) process.stderr.write(`thread ${threadId} of ${filling.length} bytes has collected\n`);
  }
});
observer.observe({ entryTypes: ['gc'] });
