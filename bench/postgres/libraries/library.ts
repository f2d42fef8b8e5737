/**
 * What the comparison needs of a job queue that is used as a library: jobs are added in one process, and handled in
 * another. Each library keeps the number of a job as the first ten digits of its body of 200 bytes.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export type LibraryName = 'bullmq' | 'pg-boss' | 'graphile-worker';

export interface JobLibrary {
  /** Makes what it needs in an empty database. */
  prepare(url: string): Promise<void>;
  openAdder(url: string): Promise<JobAdder>;
  /** Resolves when it takes jobs; `onJob` is the whole work of a job. */
  handleJobs(url: string, onJob: (body: string) => void): Promise<void>;
}

export interface JobAdder {
  /** Resolves when the job is kept. */
  add(body: string): Promise<void>;
  addMany(bodies: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export const JOB_QUEUE = 'bench';

/** A package that was installed into `folder`, and is not among those of this project. */
export async function importFrom<Module>(folder: string, name: string): Promise<Module> {
  const require = createRequire(join(folder, 'package.json'));
  return (await import(pathToFileURL(require.resolve(name)).href)) as Module;
}
