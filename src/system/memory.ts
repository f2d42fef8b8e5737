/** When does an idle process give back the memory that a burst has left? */
import { performance } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** What is known of one thread's memory, and what can be done about it. */
export interface MemoryPorts {
  /** Bytes of its heap and of its buffers outside the heap, including garbage. */
  bytesHeld(): number;
  /** CPU time of the process since the last call, as a share of the elapsed time: 1 is a whole core. */
  busyShare(): number;
  /** Stops the thread for some milliseconds. */
  collect(): void;
}

/** A collection delays other work, so it waits for idle time. V8's own collections do what is needed until then. */
const IDLE_SHARE_MAX = 0.05;
const BETWEEN_LOOKS_MS = 5_000;
/** Less garbage is not worth a pause. */
const WORTHWHILE_BYTES = 32 * 1024 * 1024;

/**
 * V8 collects garbage when a program asks for memory. After a burst none does. Without this class, hundreds of MiB of
 * garbage stay for as long as the server is idle (P10).
 */
export class MemoryKeeper {
  readonly #ports: MemoryPorts;
  /** The least that was held since the last collection. */
  #bytesKept = 0;

  constructor(ports: MemoryPorts) {
    this.#ports = ports;
  }

  /** Call this every few seconds. */
  look(): void {
    const isIdle = this.#ports.busyShare() <= IDLE_SHARE_MAX;
    const bytes = this.#ports.bytesHeld();
    this.#bytesKept = Math.min(this.#bytesKept, bytes);
    if (!isIdle || bytes < this.#bytesKept + WORTHWHILE_BYTES) return;
    this.#ports.collect();
    // Buffers are given back a little later, in another thread: the next look finds what is really left.
    this.#bytesKept = bytes;
  }
}

/** From now on this thread gives back what it does not need, and the process makes less of it. Keeps no thread alive. */
export function keepMemory(): void {
  // What survives two young collections in a burst is not what lives long: V8 would take it for that, and make all of its kind in
  // the old generation, which is collected at a much higher price (docs/performance/one-message.md).
  setFlagsFromString('--no-allocation-site-pretenuring');
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  let before = { atMs: performance.now(), cpu: process.cpuUsage() };
  const keeper = new MemoryKeeper({
    collect,
    bytesHeld() {
      const { used_heap_size, external_memory } = getHeapStatistics();
      return used_heap_size + external_memory;
    },
    // Not from the event loop's own figures: on a busy machine they show other processes' work as its own.
    busyShare() {
      const now = { atMs: performance.now(), cpu: process.cpuUsage() };
      const cpuMs = (now.cpu.user + now.cpu.system - before.cpu.user - before.cpu.system) / 1_000;
      const share = cpuMs / (now.atMs - before.atMs);
      before = now;
      return share;
    },
  });
  setInterval(() => keeper.look(), BETWEEN_LOOKS_MS).unref();
}
