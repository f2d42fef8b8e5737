/** Is a project written to in this cell? What the column `presence` of a project's row means. */

/** The numbers are stored: never change one, only add. Statements contain them as literals. */
export const PRESENCE = {
  here: 0,
  /** A move copies it here. */
  arriving: 1,
  /** A move takes it away: what is left is being copied. */
  leaving: 2,
  /** It lives in another cell, and its rows here are being deleted. */
  gone: 3,
  /** It lives in another cell, and nothing else of it is here. The row stays, so that no program takes the project for a new one. */
  elsewhere: 4,
} as const;

export type Presence = keyof typeof PRESENCE;
