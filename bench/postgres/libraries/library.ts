/**
 * What the comparison needs of a job queue that is used as a library: jobs are added in one process, and handled in
 * another. Each body has 200 bytes, of which the first ten are the digits of the job's number.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export type LibraryName = 'bullmq' | 'pg-boss' | 'graphile-worker';

/** What a library keeps. */
export interface Job {
  body: string;
  /** Where it is to be delivered, if it is a webhook. */
  destination?: string;
}

export interface JobLibrary {
  /** Whether an intake does better to add what callers bring at the same time with one call. */
  gainsByGroups: boolean;
  /** Makes what it needs in an empty database. */
  prepare(url: string): Promise<void>;
  openAdder(url: string): Promise<JobAdder>;
  /** Resolves when it takes jobs; `onJob` is the whole work of a job, which is tried again if that rejects. */
  handleJobs(url: string, onJob: (job: Job) => void | Promise<void>): Promise<void>;
}

export interface JobAdder {
  /** Resolves when the job is kept. */
  add(job: Job): Promise<void>;
  addMany(jobs: readonly Job[]): Promise<void>;
  close(): Promise<void>;
}

export const JOB_QUEUE = 'bench';

/** A package that was installed into `folder`, and is not among those of this project. */
export async function importFrom<Module>(folder: string, name: string): Promise<Module> {
  const require = createRequire(join(folder, 'package.json'));
  return (await import(pathToFileURL(require.resolve(name)).href)) as Module;
}
