/** A log that discards all events. */
import type { EventLog } from '../../src/engine/ports.ts';

export const SILENT: EventLog = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
