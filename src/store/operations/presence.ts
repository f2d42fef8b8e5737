/** Is a project written to in this cell? What the column `presence` of a project's row means. */

export const PRESENCE = {
  here: 0,
  /** A move copies it here. */
  arriving: 1,
  /** A move takes it away: what is left is being copied. */
  leaving: 2,
  /** It lives in another cell. The row stays, so that no program takes the project for a new one. */
  gone: 3,
} as const;
