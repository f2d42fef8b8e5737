/** Preloaded into each thread of a server under test: a worker throws once the file that a variable names exists. */
import { existsSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

const trigger = process.env['PLANTED_DEFECT_WHEN'];
const isWorker = workerData !== null && typeof workerData === 'object' && workerData.rank === 'other';

if (isWorker && trigger !== undefined) {
  setInterval(() => {
    if (existsSync(trigger)) throw new Error('a planted defect');
  }, 5);
}
