/**
 * The interface of a job library in the comparison: jobs are added in one process, and handled in another. Each body has
 * 200 bytes and starts with the number of its job in ten digits.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export type LibraryName = 'bullmq' | 'pg-boss' | 'graphile-worker';

/** The data of a job. */
export interface Job {
  body: string;
  /** The URL of a webhook. */
  destination?: string;
}

export interface JobLibrary {
  /** Whether an intake is faster if it adds the jobs of concurrent callers with one call. */
  benefitsFromGrouping: boolean;
  /** Creates the library's schema in an empty database. */
  prepare(url: string): Promise<void>;
  openAdder(url: string): Promise<JobAdder>;
  /** Resolves when the library is ready to handle jobs. A job whose `onJob` rejects is retried. */
  handleJobs(url: string, onJob: (job: Job) => void | Promise<void>): Promise<void>;
}

export interface JobAdder {
  /** Resolves when the job is stored. */
  add(job: Job): Promise<void>;
  addMany(jobs: readonly Job[]): Promise<void>;
  close(): Promise<void>;
}

export const JOB_QUEUE = 'bench';

/** Imports a package that was installed into `folder` and is not a dependency of this project. */
export async function importFrom<Module>(folder: string, name: string): Promise<Module> {
  const require = createRequire(join(folder, 'package.json'));
  return (await import(pathToFileURL(require.resolve(name)).href)) as Module;
}
