/** `waypost logs`: shows the log of messages, and follows it together with the log of runs. */
import { columns, timeOf } from '../columns.ts';
import { CommandFailed, EXIT } from '../command.ts';
import { followLog, type LiveEntry } from '../http/live.ts';
import { countOf, readList } from '../http/pages.ts';
import { type Call, commandOf } from '../http/verb.ts';
import { plain, plainJson } from '../plain.ts';

/** The members that entries of the log and of the live stream have in common. */
interface LogEntry {
  time: number;
  state: string;
  messageId: string;
  url: string;
  error?: string;
  responseStatus?: number;
  nextDeliveryTime?: number;
  labels?: string[];
}

const PAGE_MAX = 1000;

/** Filters that can be applied to a single live entry. */
const LIVE_FILTERS: ReadonlySet<string> = new Set([
  ...[
    'messageId',
    'messageIds',
    'url',
    'topicName',
    'queueName',
    'scheduleId',
    'label',
    'flowControlKey',
    'host',
    'path',
  ],
  'state',
]);

export const logs = commandOf('logs', {
  '': {
    meaning:
      'Shows the latest entries of the log, newest last. With -f, follows all new entries, including those of workflow runs, until Ctrl-C. When the connection breaks, it reconnects and continues without gaps.',
    filtersOf: 'listEvents',
    options: { '-f, --follow': 'Follow new entries. With --count, stop after that many.' },
    example: 'logs -f --queue-name invoices',
    run: (call) => (call.values('f').length + call.values('follow').length > 0 ? follow(call) : list(call)),
  },
});

async function list(call: Call): Promise<number> {
  const entries = await readList<LogEntry>(call, 'listEvents', 'events', PAGE_MAX);
  if (call.query.get('order') !== 'earliestFirst') entries.reverse();
  if (call.isJson) call.terminal.print(jsonLines(entries));
  else if (entries.length === 0) call.terminal.printError('No entries.\n');
  else call.terminal.print(columns(entries.map((entry) => cellsOf(entry, call))));
  return EXIT.ok;
}

async function follow(call: Call): Promise<number> {
  const { query, terminal, isJson } = call;
  const countMax = countOf(call, Number.POSITIVE_INFINITY);
  query.delete('count');
  const other = [...query.keys()].find((name) => !LIVE_FILTERS.has(name));
  if (other !== undefined) throw new CommandFailed(`--follow: cannot be combined with the filter ${other}`, EXIT.usage);
  let shown = 0;
  for await (const entries of followLog<LogEntry & LiveEntry>(call)) {
    const matching = entries.filter((entry) => matches(entry, query)).slice(0, countMax - shown);
    // All entries of a chunk are printed in one write, so that the output keeps up with thousands of entries per second.
    if (matching.length > 0)
      terminal.print(
        isJson ? jsonLines(matching) : matching.map((entry) => `${cellsOf(entry, call).join('  ')}\n`).join(''),
      );
    shown += matching.length;
    if (shown >= countMax) break;
  }
  return EXIT.ok;
}

function matches(entry: LogEntry, query: URLSearchParams): boolean {
  if (query.size === 0) return true;
  return [...new Set(query.keys())].every((name) => {
    const values = query.getAll(name);
    return valuesOf(entry, name).some((value) => values.includes(value));
  });
}

/** The values of the entry that are compared with the filter `name`. */
function valuesOf(entry: LogEntry, name: string): string[] {
  if (name === 'label') return entry.labels ?? [];
  if (name === 'messageIds') return [entry.messageId];
  if (name === 'host') return [new URL(entry.url).host];
  if (name === 'path') return [new URL(entry.url).pathname];
  const value: unknown = Reflect.get(entry, name);
  return value === undefined ? [] : [String(value)];
}

const COLOURS: Readonly<Record<string, number>> = { DELIVERED: 32, ERROR: 31, FAILED: 31, RETRY: 33, CANCELED: 90 };

function cellsOf(entry: LogEntry, { terminal }: Call): string[] {
  const { time, state, messageId, url, error, responseStatus, nextDeliveryTime } = entry;
  const padded = plain(state).padEnd('CANCEL_REQUESTED'.length);
  const colour = terminal.color ? COLOURS[state.replace(/^(RUN|STEP)_/, '')] : undefined;
  const about = [
    ...(responseStatus ? [`status ${responseStatus}`] : []),
    ...(error ? [plain(error)] : []),
    ...(nextDeliveryTime ? [`next attempt at ${timeOf(nextDeliveryTime)}`] : []),
  ];
  return [
    timeOf(time),
    colour === undefined ? padded : `\u001B[${colour}m${padded}\u001B[0m`,
    plain(messageId),
    plain(url),
    ...(about.length > 0 ? [about.join(', ')] : []),
  ];
}

function jsonLines(entries: readonly unknown[]): string {
  return entries.map((entry) => `${plainJson(entry)}\n`).join('');
}
