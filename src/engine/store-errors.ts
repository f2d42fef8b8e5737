/** Why could a store not do what it was asked? */

/** The store could not write now (disk full, busy, closing); nothing of the command was saved, unless it is `CommitUnknown`. */
export class StoreUnavailable extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = 'StoreUnavailable';
  }
}

/** What fails after so long was kept waiting, not refused: those behind it would be kept waiting as long, and in vain. */
export const HUNG_MS = 1_000;

/** Tokens or keys have changed since the caller was admitted: nothing was saved, and the caller is to be looked at again. */
export class AccountsChanged extends Error {
  constructor() {
    super('tokens or signing keys have changed since the caller was admitted');
    this.name = 'AccountsChanged';
  }
}

/** The answer to a commit was lost, and not to be had any more: all of the command was saved, or nothing. */
export class CommitUnknown extends StoreUnavailable {}
