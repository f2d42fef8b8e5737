/** Graphile Worker with the batch settings of its performance page: 24 concurrent jobs from a local queue of 500. */
import { importFrom, JOB_QUEUE, type Job, type JobLibrary } from './library.ts';

/** The members of the library that are used. */
interface GraphileWorker {
  Logger: new (factory: () => (level: string, message: string) => void) => unknown;
  makeWorkerUtils(options: { connectionString: string; maxPoolSize: number; logger: unknown }): Promise<WorkerUtils>;
  run(options: RunOptions): Promise<unknown>;
}

interface WorkerUtils {
  migrate(): Promise<void>;
  addJob(task: string, payload: Job): Promise<unknown>;
  addJobs(jobs: { identifier: string; payload: Job }[]): Promise<unknown>;
  release(): Promise<void>;
}

interface RunOptions {
  connectionString: string;
  concurrency: number;
  maxPoolSize: number;
  noHandleSignals: boolean;
  logger: unknown;
  taskList: Record<string, (payload: Job) => void | Promise<void>>;
  preset: { worker: { localQueue: { size: number }; completeJobBatchDelay: number; failJobBatchDelay: number } };
}

const CONNECTIONS = 20;

export async function loadGraphileWorker(folder: string): Promise<JobLibrary> {
  const { Logger, makeWorkerUtils, run } = await importFrom<GraphileWorker>(folder, 'graphile-worker');
  const logger = new Logger(() => (level, message) => {
    if (level === 'error') process.stderr.write(`Graphile Worker: ${message}\n`);
  });
  const open = (connectionString: string) => makeWorkerUtils({ connectionString, maxPoolSize: CONNECTIONS, logger });
  return {
    benefitsFromGrouping: true,
    async prepare(url) {
      const utils = await open(url);
      await utils.migrate();
      await utils.release();
    },
    async openAdder(url) {
      const utils = await open(url);
      return {
        add: async (job) => {
          await utils.addJob(JOB_QUEUE, job);
        },
        addMany: async (jobs) => {
          await utils.addJobs(jobs.map((payload) => ({ identifier: JOB_QUEUE, payload })));
        },
        close: () => utils.release(),
      };
    },
    async handleJobs(url, onJob) {
      await run({
        connectionString: url,
        concurrency: 24,
        maxPoolSize: CONNECTIONS,
        noHandleSignals: true,
        logger,
        taskList: { [JOB_QUEUE]: onJob },
        preset: { worker: { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
      });
    },
  };
}
