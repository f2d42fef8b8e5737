/** Why could a store not do what it was asked? */
import type { ProjectId } from './model.ts';

/** The store could not write now (disk full, busy, closing); nothing of the command was saved, unless it is `CommitUnknown`. */
export class StoreUnavailable extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = 'StoreUnavailable';
  }
}

/**
 * A command that fails after more time than this was kept waiting, not refused. Those behind it would wait as long and
 * fail.
 */
export const HUNG_MS = 1_000;

/** Tokens or keys have changed since the caller was admitted: nothing was saved, and the caller must be checked again. */
export class AccountsChanged extends Error {
  constructor() {
    super('tokens or signing keys have changed since the caller was admitted');
    this.name = 'AccountsChanged';
  }
}

/** The project is not in this cell: nothing was saved here. `isGone`: it lives in another cell; otherwise it is on its way. */
export class ProjectAway extends StoreUnavailable {
  readonly projectId: ProjectId;
  readonly isGone: boolean;

  constructor(projectId: ProjectId, isGone: boolean) {
    super(isGone ? 'the project lives in another cell' : 'the project is being moved to another cell');
    this.name = 'ProjectAway';
    this.projectId = projectId;
    this.isGone = isGone;
  }
}

/** There is no space for what was to be written. */
export class StoreFull extends StoreUnavailable {}

/** The answer to a commit was lost for good: either all of the command was saved, or nothing. */
export class CommitUnknown extends StoreUnavailable {}
