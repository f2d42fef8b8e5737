/**
 * Preloaded into each thread of a server under test: one worker cannot read its memory usage while the file that a variable
 * names exists.
 */
import { existsSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

const trigger = process.env['MEMORY_UNREADABLE_WHILE'];
const isWorker = workerData !== null && typeof workerData === 'object' && workerData.rank === 'other';

if (isWorker && trigger !== undefined) {
  const { rss } = process.memoryUsage;
  process.memoryUsage.rss = () => {
    if (existsSync(trigger)) throw new Error('EMFILE: too many open files, uv_resident_set_memory');
    return rss();
  };
}
