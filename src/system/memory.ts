/** Collects garbage in an idle process, so that the process returns the memory of a past burst to the system. */
import { performance } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Measures and collects the memory of one thread. */
export interface MemoryPorts {
  /** Bytes of the thread's heap and of its buffers outside the heap, including garbage. */
  bytesUsed(): number;
  /** CPU time of the process since the last call, as a share of the elapsed time: 1 is a whole core. */
  cpuShare(): number;
  /** Collects garbage, which stops the thread for some milliseconds. */
  collect(): void;
}

/**
 * The CPU share below which a process counts as idle. A collection delays other work, and a busy process needs only V8's
 * own collections.
 */
const IDLE_CPU_SHARE_MAX = 0.05;
const CHECK_INTERVAL_MS = 5_000;
/** A collection is worth its pause only if there is at least this much garbage. */
const WORTHWHILE_BYTES = 32 * 1024 * 1024;

/**
 * V8 collects garbage only when a program allocates memory, but an idle server allocates no memory. After a burst, such a
 * server would keep hundreds of MiB of garbage without this class (P10).
 */
export class IdleCollector {
  readonly #ports: MemoryPorts;
  /** The lowest memory use since the last collection. */
  #bytesMin = 0;

  constructor(ports: MemoryPorts) {
    this.#ports = ports;
  }

  /** Call this every few seconds. */
  check(): void {
    const isIdle = this.#ports.cpuShare() <= IDLE_CPU_SHARE_MAX;
    const bytes = this.#ports.bytesUsed();
    this.#bytesMin = Math.min(this.#bytesMin, bytes);
    if (!isIdle || bytes < this.#bytesMin + WORTHWHILE_BYTES) return;
    this.#ports.collect();
    // Another thread frees the buffers a little later, so the next check measures the memory use after the collection.
    this.#bytesMin = bytes;
  }
}

/** Starts to return unneeded memory of this thread, and makes V8 produce less garbage. Keeps no thread alive. */
export function startIdleCollection(): void {
  // Objects that survive two young collections in a burst are not long-lived. Without this flag, V8 would treat all
  // objects of the same kind as long-lived and allocate them in the old generation, whose collection costs much more
  // (docs/performance/one-message.md).
  setFlagsFromString('--no-allocation-site-pretenuring');
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  let before = { atMs: performance.now(), cpu: process.cpuUsage() };
  const collector = new IdleCollector({
    collect,
    bytesUsed() {
      const { used_heap_size, external_memory } = getHeapStatistics();
      return used_heap_size + external_memory;
    },
    // Uses CPU time instead of the event loop's utilization, which on a busy machine includes the time of other
    // processes.
    cpuShare() {
      const now = { atMs: performance.now(), cpu: process.cpuUsage() };
      const cpuMs = (now.cpu.user + now.cpu.system - before.cpu.user - before.cpu.system) / 1_000;
      const share = cpuMs / (now.atMs - before.atMs);
      before = now;
      return share;
    },
  });
  setInterval(() => collector.check(), CHECK_INTERVAL_MS).unref();
}
