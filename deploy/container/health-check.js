// Is the server in this container alive? Ends with 0 if it is and with 1 if not: HEALTHCHECK of an image without curl.
//
// It asks /healthz and not /readyz: a worker whose database is away is not ready, but to start it anew, as some
// supervisors do with what is unhealthy, would only cut off its attempts.
import { get } from 'node:http';

const port = process.env.WAYPOST_PORT || process.env.PORT || '8080';
const ANSWER_LIMIT_MS = 3000;

process.exitCode = 1; // until it has answered
const request = get({ host: '127.0.0.1', port, path: '/healthz', timeout: ANSWER_LIMIT_MS }, (response) => {
  if (response.statusCode === 200) process.exitCode = 0;
  response.destroy();
});
request.on('timeout', () => request.destroy());
request.on('error', () => {}); // no answer: the exit code says it
