/**
 * Preloaded into a server to measure the longest block of its event loop since the last request. Responses are sent from
 * the measured loop itself, on the socket that `WAYPOST_LOOP_WATCH` names.
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
