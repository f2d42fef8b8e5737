/**
 * pg-boss, with eight pollers that take a hundred jobs at a time. A poller continues at once after a full batch, and otherwise
 * waits for a `notify`.
 */
import { importFrom, JOB_QUEUE, type Job, type JobLibrary } from './library.ts';

/** The members of the library that are used. */
interface PgBossModule {
  PgBoss: new (options: { connectionString: string; max: number; useListenNotify: boolean }) => PgBoss;
}

interface PgBoss {
  on(event: 'error', listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: { graceful: boolean }): Promise<void>;
  createQueue(name: string, options: { notify: boolean }): Promise<void>;
  send(name: string, data: Job): Promise<string | null>;
  insert(name: string, jobs: { data: Job }[]): Promise<unknown>;
  work(name: string, options: WorkOptions, handler: (jobs: { data: Job }[]) => Promise<void>): Promise<string>;
}

interface WorkOptions {
  batchSize: number;
  localConcurrency: number;
  pollingIntervalSeconds: number;
  notifyPollingIntervalSeconds: number;
  burstWhenBatchFull: boolean;
}

const CONNECTIONS = 20;

export async function loadPgBoss(folder: string): Promise<JobLibrary> {
  const { PgBoss } = await importFrom<PgBossModule>(folder, 'pg-boss');
  const start = async (connectionString: string): Promise<PgBoss> => {
    const boss = new PgBoss({ connectionString, max: CONNECTIONS, useListenNotify: true });
    boss.on('error', (error) => process.stderr.write(`pg-boss: ${String(error)}\n`));
    await boss.start();
    return boss;
  };
  return {
    benefitsFromGrouping: true,
    async prepare(url) {
      const boss = await start(url);
      await boss.createQueue(JOB_QUEUE, { notify: true });
      await boss.stop({ graceful: false });
    },
    async openAdder(url) {
      const boss = await start(url);
      return {
        add: async (job) => {
          await boss.send(JOB_QUEUE, job);
        },
        addMany: async (jobs) => {
          await boss.insert(
            JOB_QUEUE,
            jobs.map((data) => ({ data })),
          );
        },
        close: () => boss.stop({ graceful: false }),
      };
    },
    async handleJobs(url, onJob) {
      const boss = await start(url);
      const options: WorkOptions = {
        batchSize: 100,
        localConcurrency: 8,
        pollingIntervalSeconds: 0.5,
        notifyPollingIntervalSeconds: 0.5,
        burstWhenBatchFull: true,
      };
      // One failed job repeats its whole batch; settling each job individually would cost far more.
      await boss.work(JOB_QUEUE, options, async (jobs) => {
        await Promise.all(jobs.map(({ data }) => onJob(data)));
      });
    },
  };
}
