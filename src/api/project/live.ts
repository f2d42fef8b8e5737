/** Streams new log entries of a project as server-sent events, and lists the entries that a client has missed. */
import { Type } from '@sinclair/typebox';
import type { LogWatcher } from '../../engine/live/feed.ts';
import { LiveWindow } from '../../engine/live/window.ts';
import { LOG_STATES, type ProjectId, RUN_LOG_STATES } from '../../engine/model.ts';
import type { Timer } from '../../engine/ports.ts';
import type { LiveEntry, LogPosition } from '../../engine/stores.ts';
import { decodeCursor, encodeCursor } from '../../protocol/cursor.ts';
import { ApiError } from '../../protocol/errors.ts';
import { MethodSchema } from '../../protocol/options/config-options.ts';
import { maskPassword } from '../../protocol/urls/masked-url.ts';
import { invalidParameter, pageCount, readQuery, text } from '../requests/parameters.ts';
import { type ApiResponse, jsonArrayOf, jsonObjectResponse, refusal, type Sink } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import { AtLeastOne, exactly, LabelsSchema, MessageIdSchema, Ms, shapeOf, Text } from '../schemas.ts';

/** A state change without bodies and headers, which therefore needs no redaction. */
const LIVE_ENTRY = shapeOf<[LiveEntry]>()(
  {
    id: [
      Type.String({ minLength: 1, description: 'its position in the log, which is also a cursor of /v2/logs' }),
      ({ timeMs, n }) => encodeCursor(timeMs, n),
    ],
    time: [Ms, ({ timeMs }) => timeMs],
    messageId: [MessageIdSchema, ({ messageId }) => messageId],
    state: [Type.Union([...LOG_STATES, ...RUN_LOG_STATES].map((name) => Type.Literal(name))), ({ state }) => state],
    url: [Text, ({ url }) => maskPassword(url)],
    method: [MethodSchema, ({ method }) => method],
    topicName: [Type.Optional(Text), ({ topicName }) => topicName],
    queueName: [Type.Optional(Text), ({ queueName }) => queueName],
    scheduleId: [Type.Optional(Text), ({ scheduleId }) => scheduleId],
    flowControlKey: [Type.Optional(Text), ({ flowControlKey }) => flowControlKey],
    label: [Type.Optional(Text), ({ labels }) => labels?.[0]],
    labels: [LabelsSchema, ({ labels }) => (labels?.length ? labels : undefined)],
    workflowRunId: [Type.Optional(Text), ({ runId }) => runId],
    error: [Type.Optional(Text), ({ error }) => error],
    nextDeliveryTime: [Type.Optional(Ms), ({ nextDeliveryTimeMs }) => nextDeliveryTimeMs],
    responseStatus: [Type.Optional(Type.Integer()), ({ responseStatus }) => responseStatus],
  },
  'LiveEntry',
);
const LiveEntriesSchema = exactly({ entries: Type.Array(LIVE_ENTRY.schema) });
const LiveOpenSchema = exactly({}, 'LiveOpen');
const LiveLostSchema = exactly({ count: AtLeastOne }, 'LiveLost');
const LiveEndSchema = exactly(
  {
    reason: Type.Union(['draining', 'unauthenticated', 'unavailable'].map((name) => Type.Literal(name))),
  },
  'LiveEnd',
);
const LiveSchema = Type.String({
  contentMediaType: 'text/event-stream',
  contentSchema: Type.Union([LiveOpenSchema, LIVE_ENTRY.schema, LiveLostSchema, LiveEndSchema]),
  description: [
    'Server-sent events, each with JSON as its data: `open` (LiveOpen) when the stream has started, `entry` (LiveEntry),',
    '`lost` (LiveLost) with the number of entries that a slow client has missed, and `end` (LiveEnd). The `id` of an event is a cursor.',
  ].join(' '),
});

/** Maximum open streams of a project in each worker. */
const STREAMS_MAX = 16;

/** The interval of heartbeats, and so the longest time that a stream stays open after its token was revoked. */
const HEARTBEAT_MS = 15_000;

const PAGE_MAX = 1_000;

const ENTRIES_QUERY = [
  text(
    'cursor',
    'Position in the log: the id of an entry, or of an event of the live stream. Lists the entries after it, all by default.',
  ),
  pageCount(PAGE_MAX),
];

export function liveRoutes({ engine, clock, closing, endOfTurn }: Services): Route[] {
  const openByProject = new Map<ProjectId, number>();
  const streams = new Set<LiveStream>();
  closing.addEventListener('abort', () => {
    for (const stream of streams) stream.end('draining');
  });

  function watch(call: Call): ApiResponse {
    const open = openByProject.get(call.projectId) ?? 0;
    if (open >= STREAMS_MAX)
      return refusal(429, `${STREAMS_MAX} live streams of this project are open: close one first`);
    openByProject.set(call.projectId, open + 1);
    let stop = (): void => {};
    return {
      status: 200,
      json: '',
      // nginx does not buffer a response with the second header.
      headers: { 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
      stream: {
        contentType: 'text/event-stream',
        start: (to) => {
          stop = start(call, to);
        },
      },
      onSent: () => {
        stop();
        const othersOpen = (openByProject.get(call.projectId) ?? 0) - 1;
        if (othersOpen > 0) openByProject.set(call.projectId, othersOpen);
        else openByProject.delete(call.projectId);
      },
    };
  }

  /** Returns the function that stops the stream. */
  function start({ projectId, readmit }: Call, to: Sink): () => void {
    const stream = new LiveStream(to);
    streams.add(stream);
    const unwatch = engine.watchLog(projectId, stream);
    let heartbeat: Timer;
    const sendHeartbeat = (): void => {
      stream.sendHeartbeat();
      // Each heartbeat checks the token again, which may have been revoked.
      readmit().then(
        () => {
          if (streams.has(stream)) startHeartbeat();
        },
        (error: unknown) => {
          if (streams.has(stream)) stream.end(error instanceof ApiError ? 'unauthenticated' : 'unavailable');
        },
      );
    };
    const startHeartbeat = (): void => {
      heartbeat = clock.startTimer(HEARTBEAT_MS, sendHeartbeat, 'outside');
    };
    startHeartbeat();
    if (closing.aborted) stream.end('draining');
    return () => {
      unwatch();
      heartbeat.cancel();
      streams.delete(stream);
    };
  }

  async function list({ projectId, rawQuery }: Call): Promise<ApiResponse> {
    const { cursor = '0', count = PAGE_MAX } = readQuery(rawQuery, ENTRIES_QUERY);
    const after = decodeCursor(cursor);
    if (after === undefined) throw invalidParameter('cursor', 'take it from an entry or an event of the live stream');
    const entries = await engine.storeOf(projectId).logs.listLogsAfter({
      after: { timeMs: after.ms, n: after.n ?? Number.MAX_SAFE_INTEGER },
      toMs: LiveWindow.toMs(clock.nowMs()),
      except: [],
      count,
    });
    return jsonObjectResponse({ entries: await jsonArrayOf(entries, LIVE_ENTRY.view, { clock, endOfTurn }) });
  }

  return [
    {
      ...row('read', 'GET', '/v2/waypost/live/entries', 'listLiveEntries'),
      summary:
        'Lists the log entries after a position, oldest first: those that a client of the live stream has missed.',
      takes: { query: ENTRIES_QUERY },
      responses: { 200: LiveEntriesSchema },
      handle: list,
    },
    {
      ...row('read', 'GET', '/v2/waypost/live', 'watchLog'),
      summary: 'Sends each log entry of the project, those of workflow runs included, when it is written.',
      responses: { 200: LiveSchema },
      handle: watch,
    },
  ];
}

/** Entries are dropped while this many bytes or more wait for the client. The last chunk may exceed the limit. */
export const UNREAD_BYTES_MAX = 256 * 1024;

/** Events are combined into chunks of about this many characters. */
const CHUNK_LENGTH = 16 * 1024;

/** Events that are written together. */
interface Chunk {
  count: number;
  bytes: Uint8Array;
}

/** The reason why the server ends a stream. */
type EndReason = 'draining' | 'unauthenticated' | 'unavailable';

export class LiveStream implements LogWatcher {
  readonly #to: Sink;
  #lost = 0;
  #isOver = false;

  constructor(to: Sink) {
    this.#to = to;
    to.on('drain', () => this.#reportLost());
    this.sendHeartbeat(); // sends the head of the response too
  }

  start(last: LogPosition | undefined): void {
    if (this.#hasCapacity) this.#to.write(event('open', {}, last));
  }

  publish(entries: readonly LiveEntry[]): void {
    for (const { bytes, count } of chunksOf(entries)) {
      this.#reportLost();
      if (this.#hasCapacity) this.#to.write(bytes);
      else this.#lost += count;
    }
  }

  skip(count: number): void {
    this.#lost += count;
    this.#reportLost();
  }

  close(): void {
    this.end('unavailable');
  }

  /** Sends a comment, so that both sides notice a broken connection. */
  sendHeartbeat(): void {
    if (this.#hasCapacity) this.#to.write(':\n\n');
  }

  /** Ends the stream. Later entries are ignored. */
  end(reason: EndReason): void {
    if (this.#isOver) return;
    this.#reportLost();
    this.#isOver = true;
    this.#to.write(event('end', { reason }));
    this.#to.end();
  }

  get #hasCapacity(): boolean {
    return !this.#isOver && this.#to.writableLength < UNREAD_BYTES_MAX;
  }

  #reportLost(): void {
    if (this.#lost === 0 || !this.#hasCapacity) return;
    this.#to.write(event('lost', { count: this.#lost }));
    this.#lost = 0;
  }
}

/** All streams of a project send the same entries, so their chunks are serialized once. */
const chunksByEntries = new WeakMap<readonly LiveEntry[], Chunk[]>();

function chunksOf(entries: readonly LiveEntry[]): readonly Chunk[] {
  const cached = chunksByEntries.get(entries);
  if (cached) return cached;
  const chunks: Chunk[] = [];
  let text = '';
  let count = 0;
  for (const [index, entry] of entries.entries()) {
    text += event('entry', LIVE_ENTRY.view(entry), entry);
    count += 1;
    if (text.length < CHUNK_LENGTH && index < entries.length - 1) continue;
    chunks.push({ count, bytes: new TextEncoder().encode(text) });
    text = '';
    count = 0;
  }
  chunksByEntries.set(entries, chunks);
  return chunks;
}

/** The data is one line, since `JSON.stringify` writes no line breaks. */
function event(name: string, data: object, at?: LogPosition): string {
  const id = at ? `id: ${encodeCursor(at.timeMs, at.n)}\n` : '';
  return `event: ${name}\n${id}data: ${JSON.stringify(data)}\n\n`;
}
