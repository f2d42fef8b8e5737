/** The log of what a test starts whose events it does not read. */
import type { EventLog } from '../../src/engine/ports.ts';

export const SILENT: EventLog = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
