/** Loads a library by its name, for the processes that add and handle jobs. */
import { loadBullMq } from './bullmq.ts';
import { loadGraphileWorker } from './graphile-worker.ts';
import type { JobLibrary, LibraryName } from './library.ts';
import { loadPgBoss } from './pg-boss.ts';

const LOADERS: Readonly<Record<LibraryName, (folder: string) => Promise<JobLibrary>>> = {
  bullmq: loadBullMq,
  'pg-boss': loadPgBoss,
  'graphile-worker': loadGraphileWorker,
};

/** `folder` has the installed packages. */
export function loadLibrary(name: LibraryName, folder: string): Promise<JobLibrary> {
  return LOADERS[name](folder);
}

export function isLibraryName(name: string | undefined): name is LibraryName {
  return name !== undefined && Object.hasOwn(LOADERS, name);
}
