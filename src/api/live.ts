/** Shows what is added to a project's log while it happens. Our own addition, for the console. */
import { LiveWindow } from '../engine/live/window.ts';
import type { ProjectId } from '../engine/model.ts';
import type { Timer } from '../engine/ports.ts';
import { decodeCursor } from '../protocol/cursor.ts';
import { ApiError } from '../protocol/errors.ts';
import { type Answer, answer, refusal, type Sink } from './answer.ts';
import { LiveStream } from './live-stream.ts';
import { pageCount, text } from './parameter-kinds.ts';
import { invalidParameter, readQuery } from './parameters.ts';
import { type Call, type Route, row, type Services } from './route.ts';
import { LiveEntriesSchema, LiveSchema } from './schemas.ts';
import { liveEntryView } from './views.ts';

/** Streams of a project that are open at a time, of each worker. */
const STREAMS_MAX = 16;

/** Also how long a revoked token may read on. */
const HEARTBEAT_MS = 15_000;

const PAGE_MAX = 1_000;

const AFTER = [
  text(
    'cursor',
    'Place in the log: the id of an entry, or of an event of the live stream. Those after it are listed; without it all.',
  ),
  pageCount(PAGE_MAX),
];

export function liveRoutes({ engine, clock, closing }: Services): Route[] {
  const openByProject = new Map<ProjectId, number>();
  const streams = new Set<LiveStream>();
  closing.addEventListener('abort', () => {
    for (const stream of streams) stream.end('draining');
  });

  function watch(call: Call): Answer {
    const open = openByProject.get(call.projectId) ?? 0;
    if (open >= STREAMS_MAX)
      return refusal(429, `${STREAMS_MAX} live streams of this project are open: close one first`);
    openByProject.set(call.projectId, open + 1);
    let stop = (): void => {};
    return {
      status: 200,
      json: '',
      // The second one is for nginx.
      headers: { 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
      stream: {
        contentType: 'text/event-stream',
        begin: (to) => {
          stop = begin(call, to);
        },
      },
      sent: () => {
        stop();
        const left = (openByProject.get(call.projectId) ?? 0) - 1;
        if (left > 0) openByProject.set(call.projectId, left);
        else openByProject.delete(call.projectId);
      },
    };
  }

  /** Returns how to stop. */
  function begin({ projectId, readmit }: Call, to: Sink): () => void {
    const stream = new LiveStream(to);
    streams.add(stream);
    const unwatch = engine.watchLog(projectId, stream);
    let heartbeat: Timer;
    const beat = (): void => {
      stream.beat();
      // Each beat asks again, since the token may have been revoked.
      readmit().then(
        () => {
          if (streams.has(stream)) wait();
        },
        (error: unknown) => {
          if (streams.has(stream)) stream.end(error instanceof ApiError ? 'unauthenticated' : 'unavailable');
        },
      );
    };
    const wait = (): void => {
      heartbeat = clock.startTimer(HEARTBEAT_MS, beat, 'outside');
    };
    wait();
    if (closing.aborted) stream.end('draining');
    return () => {
      unwatch();
      heartbeat.cancel();
      streams.delete(stream);
    };
  }

  async function list({ projectId, rawQuery }: Call): Promise<Answer> {
    const { cursor = '0', count = PAGE_MAX } = readQuery(rawQuery, AFTER);
    const after = decodeCursor(cursor);
    if (after === undefined) throw invalidParameter('cursor', 'take it from an entry or an event of the live stream');
    const entries = await engine.storeOf(projectId).logs.listLogsAfter({
      after: { timeMs: after.ms, n: after.n ?? Number.MAX_SAFE_INTEGER },
      toMs: LiveWindow.toMs(clock.nowMs()),
      except: [],
      count,
    });
    return answer(200, { entries: entries.map(liveEntryView) });
  }

  return [
    {
      ...row('read', 'GET', '/v2/waypost/live/entries', 'listLiveEntries'),
      summary: 'Lists the log entries after a place, oldest first: what a client of the live stream has missed.',
      takes: { query: AFTER },
      answers: { 200: LiveEntriesSchema },
      handle: list,
    },
    {
      ...row('read', 'GET', '/v2/waypost/live', 'watchLog'),
      summary: 'Sends each log entry of the project, those of workflow runs included, when it is written.',
      answers: { 200: LiveSchema },
      handle: watch,
    },
  ];
}
