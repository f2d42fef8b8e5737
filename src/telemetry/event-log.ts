/** Writes the server log, one line per event: as JSON, or formatted for a terminal. */
import { pino } from 'pino';
import type { EventLog } from '../engine/ports.ts';
import { formatLine } from './pretty.ts';

export interface EventLogOptions {
  format: 'json' | 'pretty';
  level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** Used only by the format `pretty`. */
  color: boolean;
  /** Called with whole lines. */
  write: (line: string) => void;
}

/**
 * The fields that an event may have. Other fields are dropped here, so that a body, a token or a whole URL that is passed
 * by mistake does not reach a log file.
 */
export const FIELDS_ALLOWED: ReadonlySet<string> = new Set([
  'address',
  'attempts',
  'by',
  'byMs',
  'bytes',
  'cell',
  'code',
  'count',
  'dataDir',
  'durationMs',
  'error',
  'inFlight',
  'kind',
  'limitMs',
  'messageId',
  'messages',
  'metrics',
  'next',
  'option',
  'origin',
  'path',
  'pid',
  'port',
  'project',
  'reason',
  'retried',
  'route',
  'runId',
  'scope',
  'seed',
  'setting',
  'signal',
  'stack',
  'status',
  'times',
  'tokenId',
  'url',
  'version',
  'waiting',
  'worker',
  'workers',
]);

/** Longer texts are truncated: an error may quote the input of an unknown client. */
const TEXT_LENGTH_MAX = 2000;

type Fields = Record<string, string | number | boolean>;

export function createEventLog(options: EventLogOptions): EventLog {
  const logger = pino(
    {
      level: options.level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (level) => ({ level }) },
    },
    {
      write: (line: string) =>
        options.write(options.format === 'json' ? line : formatLine(JSON.parse(line), options.color)),
    },
  );
  return {
    debug: (event, fields) => logger.debug({ event, ...allowed(fields) }),
    info: (event, fields) => logger.info({ event, ...allowed(fields) }),
    warn: (event, fields) => logger.warn({ event, ...allowed(fields) }),
    error: (event, fields) => logger.error({ event, ...allowed(fields) }),
  };
}

function allowed(fields: Fields = {}): Fields {
  const kept: Fields = {};
  for (const [name, value] of Object.entries(fields)) {
    if (!FIELDS_ALLOWED.has(name)) continue;
    kept[name] =
      typeof value === 'string' && value.length > TEXT_LENGTH_MAX ? `${value.slice(0, TEXT_LENGTH_MAX)}…` : value;
  }
  return kept;
}
