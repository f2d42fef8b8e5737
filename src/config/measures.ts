/** Units of size in bytes and of time in milliseconds, for the tables of settings. */
export const MIB = 1024 ** 2;
export const GIB = 1024 ** 3;
export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
