/** BullMQ on Redis. A hundred jobs at a time in one process, as its guide on concurrency advises for short ones. */
import { importFrom, JOB_QUEUE, type JobLibrary } from './library.ts';

interface Data {
  body: string;
}

/** As much of the library as is used. */
interface BullMq {
  Queue: new (
    name: string,
    options: QueueOptions,
  ) => {
    waitUntilReady(): Promise<unknown>;
    add(name: string, data: Data): Promise<unknown>;
    addBulk(jobs: { name: string; data: Data }[]): Promise<unknown>;
    close(): Promise<void>;
  };
  Worker: new (
    name: string,
    work: (job: { data: Data }) => Promise<void>,
    options: WorkerOptions,
  ) => {
    waitUntilReady(): Promise<unknown>;
    on(event: 'error', listener: (error: Error) => void): void;
  };
}

interface QueueOptions {
  connection: { url: string };
  defaultJobOptions: { removeOnComplete: boolean };
}

interface WorkerOptions {
  connection: { url: string; maxRetriesPerRequest: null };
  concurrency: number;
}

export async function loadBullMq(folder: string): Promise<JobLibrary> {
  const { Queue, Worker } = await importFrom<BullMq>(folder, 'bullmq');
  return {
    prepare: async () => undefined,
    async openAdder(url) {
      const queue = new Queue(JOB_QUEUE, { connection: { url }, defaultJobOptions: { removeOnComplete: true } });
      await queue.waitUntilReady();
      return {
        add: async (body) => {
          await queue.add('job', { body });
        },
        addMany: async (bodies) => {
          await queue.addBulk(bodies.map((body) => ({ name: 'job', data: { body } })));
        },
        close: () => queue.close(),
      };
    },
    async handleJobs(url, onJob) {
      const connection = { url, maxRetriesPerRequest: null };
      const worker = new Worker(JOB_QUEUE, async (job) => onJob(job.data.body), { connection, concurrency: 100 });
      worker.on('error', (error) => process.stderr.write(`BullMQ: ${String(error)}\n`));
      await worker.waitUntilReady();
    },
  };
}
