/** When does a process that has become idle give back what a burst has left? */
import { performance } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** What one thread has, and can do about it. */
export interface MemoryPorts {
  /** Bytes of its heap and of its buffers beside that, those included that nobody refers to any more. */
  bytesHeld(): number;
  /** CPU time of the process since the question before, as a part of that time: 1 is a whole core. */
  busyShare(): number;
  /** Stops the thread for some milliseconds. */
  collect(): void;
}

/** Who collects while there is work delays it; the engine's own collections do then what is needed. */
const IDLE_SHARE_MAX = 0.05;
const BETWEEN_LOOKS_MS = 5_000;
/** Less is not worth a pause. */
const WORTHWHILE_BYTES = 32 * 1024 * 1024;

/**
 * V8 collects when something asks for memory. After a burst nothing does: without this, hundreds of MiB that nobody refers to
 * stay for as long as the server has nothing to do (P10).
 */
export class MemoryKeeper {
  readonly #ports: MemoryPorts;
  /** The least that was held since the last collection. */
  #bytesKept = 0;

  constructor(ports: MemoryPorts) {
    this.#ports = ports;
  }

  /** To be called every few seconds. */
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

/** From now on this thread gives back what it does not need. Keeps no thread alive. */
export function keepMemory(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  let before = { atMs: performance.now(), cpu: process.cpuUsage() };
  const keeper = new MemoryKeeper({
    collect,
    bytesHeld() {
      const { used_heap_size, external_memory } = getHeapStatistics();
      return used_heap_size + external_memory;
    },
    // Not by the event loop's own account, to which a machine that is busy with others looks like work.
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
