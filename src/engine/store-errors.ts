/** The errors of a store that could not perform an operation. */
import type { ProjectId } from './model.ts';

/**
 * The store could not write now (disk full, busy, closing). Nothing of the command was saved, except perhaps with
 * `CommitUnknown`.
 */
export class StoreUnavailable extends Error {
  /** The message without the error text of the database, which may name hosts and users: `/readyz` is public. */
  readonly reason: string;
  /** The error text of the database. */
  readonly detail: string | undefined;

  constructor(reason: string, { detail, ...options }: ErrorOptions & { detail?: string | undefined } = {}) {
    super(detail === undefined ? reason : `${reason}: ${detail}`, options);
    this.name = 'StoreUnavailable';
    this.reason = reason;
    this.detail = detail;
  }
}

/** The reason that `/readyz` shows: see `StoreUnavailable.reason`. */
export function publicReason(error: unknown): string {
  return error instanceof StoreUnavailable ? error.reason : 'it fails in a way that the log describes';
}

/**
 * A command that fails after a longer time than this was delayed by the store, not rejected. Commands that are queued
 * after such a command would wait as long and fail, too.
 */
export const HUNG_MS = 1_000;

/** Tokens or keys have changed since the caller was admitted. Nothing was saved, and the caller must be checked again. */
export class AccountsChanged extends Error {
  constructor() {
    super('tokens or signing keys have changed since the caller was admitted');
    this.name = 'AccountsChanged';
  }
}

/**
 * The project is not in this cell, so nothing was saved. `isGone`: true if another cell has the project; false during its
 * move.
 */
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

/** There is no disk space for the write. */
export class StoreFull extends StoreUnavailable {}

/** The response to a commit was lost: the command was saved either completely or not at all. */
export class CommitUnknown extends StoreUnavailable {}
