/** Preloaded by a server under test: says on standard error which of its threads has been told to collect its garbage. */
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { threadId } from 'node:worker_threads';

const observer = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { flags } = (entry as PerformanceEntry & { detail: { flags: number } }).detail;
    if (flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) process.stderr.write(`collected in thread ${threadId}\n`);
  }
});
observer.observe({ entryTypes: ['gc'] });
