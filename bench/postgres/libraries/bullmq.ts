/** BullMQ on Redis, with a concurrency of 100 in one process, as its guide recommends for short jobs. */
import { importFrom, JOB_QUEUE, type Job, type JobLibrary } from './library.ts';

/** The members of the library that are used. */
interface BullMq {
  Queue: new (
    name: string,
    options: QueueOptions,
  ) => {
    waitUntilReady(): Promise<unknown>;
    add(name: string, data: Job): Promise<unknown>;
    addBulk(jobs: { name: string; data: Job }[]): Promise<unknown>;
    close(): Promise<void>;
  };
  Worker: new (
    name: string,
    work: (job: { data: Job }) => Promise<void>,
    options: WorkerOptions,
  ) => {
    waitUntilReady(): Promise<unknown>;
    on(event: 'error', listener: (error: Error) => void): void;
  };
}

interface QueueOptions {
  connection: { url: string };
  defaultJobOptions: { removeOnComplete: boolean; attempts: number };
}

interface WorkerOptions {
  connection: { url: string; maxRetriesPerRequest: null };
  concurrency: number;
}

export async function loadBullMq(folder: string): Promise<JobLibrary> {
  const { Queue, Worker } = await importFrom<BullMq>(folder, 'bullmq');
  return {
    // Redis syncs once for all commands that it reads together, so grouped adds were no faster.
    benefitsFromGrouping: false,
    prepare: async () => undefined,
    async openAdder(url) {
      const defaultJobOptions = { removeOnComplete: true, attempts: 4 };
      const queue = new Queue(JOB_QUEUE, { connection: { url }, defaultJobOptions });
      await queue.waitUntilReady();
      return {
        add: async (job) => {
          await queue.add('job', job);
        },
        addMany: async (jobs) => {
          await queue.addBulk(jobs.map((data) => ({ name: 'job', data })));
        },
        close: () => queue.close(),
      };
    },
    async handleJobs(url, onJob) {
      const connection = { url, maxRetriesPerRequest: null };
      const worker = new Worker(JOB_QUEUE, async ({ data }) => onJob(data), { connection, concurrency: 100 });
      worker.on('error', (error) => process.stderr.write(`BullMQ: ${String(error)}\n`));
      await worker.waitUntilReady();
    },
  };
}
