/** Which library, by its name: for the process that adds and for the one that handles. */
import { loadBullMq } from './bullmq.ts';
import { loadGraphileWorker } from './graphile-worker.ts';
import type { JobLibrary, LibraryName } from './library.ts';
import { loadPgBoss } from './pg-boss.ts';

const LOADERS: Readonly<Record<LibraryName, (folder: string) => Promise<JobLibrary>>> = {
  bullmq: loadBullMq,
  'pg-boss': loadPgBoss,
  'graphile-worker': loadGraphileWorker,
};

/** `folder` is where the packages of the references are installed. */
export function loadLibrary(name: LibraryName, folder: string): Promise<JobLibrary> {
  return LOADERS[name](folder);
}

export function isLibraryName(name: string | undefined): name is LibraryName {
  return name !== undefined && Object.hasOwn(LOADERS, name);
}
