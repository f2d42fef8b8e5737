/** Shows what is added to a project's log while it happens. Our own addition, for the console. */
import type { ProjectId } from '../engine/model.ts';
import type { Timer } from '../engine/ports.ts';
import { ApiError } from '../protocol/errors.ts';
import { type Answer, refusal, type Sink } from './answer.ts';
import { LiveStream } from './live-stream.ts';
import type { Call, Route, Services } from './route.ts';
import { LiveSchema } from './schemas.ts';

/** Streams of a project that are open at a time, of each worker. */
const STREAMS_MAX = 16;

/** Also how long a revoked token may read on. */
const HEARTBEAT_MS = 15_000;

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
      heartbeat = clock.startTimer(HEARTBEAT_MS, beat);
    };
    wait();
    if (closing.aborted) stream.end('draining');
    return () => {
      unwatch();
      heartbeat.cancel();
      streams.delete(stream);
    };
  }

  return [
    {
      method: 'GET',
      path: '/v2/waypost/live',
      operationId: 'watchLog',
      access: 'read',
      summary: 'Sends each log entry of the project, those of workflow runs included, when it is written.',
      answers: { 200: LiveSchema },
      handle: watch,
    },
  ];
}
