/**
 * Loaded into a server before its own code: how long has its event loop been held since somebody last asked? Answers over
 * the socket that `WAYPOST_LOOP_WATCH` names, from the loop that is watched.
 */
import { createServer } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const path = process.env['WAYPOST_LOOP_WATCH'];
if (isMainThread && path !== undefined) {
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.end(String(delays.max / 1e6));
    delays.reset();
  });
  server.listen(path);
  server.unref();
}
