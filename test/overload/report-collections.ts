/**
 * Preloaded into each thread of a server under test: fills the heap of the thread, and reports on standard error when the
 * thread is asked to collect garbage. The garbage of real requests would not do: V8 may collect it earlier by itself.
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
