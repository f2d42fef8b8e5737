/** How far does a claim look? No further than at what its batch has locked for it (`locks.ts`). */

/** Due messages looked at in one transaction: what a window full of messages for one full origin may cost. */
export const EXAMINED_MAX = 500;
/** Flow-control keys that have their turn in one transaction; the others' comes with the next. */
export const LANES_MAX = 64;
