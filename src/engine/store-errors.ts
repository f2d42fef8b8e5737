/** Why could a store not do what it was asked? */
import type { ProjectId } from './model.ts';

/** The store could not write now (disk full, busy, closing); nothing of the command was saved, unless it is `CommitUnknown`. */
export class StoreUnavailable extends Error {
  /** The message without the database's own words, which may name hosts and users: anybody may read it at `/readyz`. */
  readonly reason: string;
  /** The database's own words. */
  readonly detail: string | undefined;

  constructor(reason: string, { detail, ...options }: ErrorOptions & { detail?: string | undefined } = {}) {
    super(detail === undefined ? reason : `${reason}: ${detail}`, options);
    this.name = 'StoreUnavailable';
    this.reason = reason;
    this.detail = detail;
  }
}

/** For `/readyz`; see `StoreUnavailable.reason`. */
export function publicReason(error: unknown): string {
  return error instanceof StoreUnavailable ? error.reason : 'it fails in a way that the log describes';
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
