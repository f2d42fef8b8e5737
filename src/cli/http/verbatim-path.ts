/**
 * Sends requests whose path has a segment `.` or `..`. Such a segment is removed by `fetch`, as by every URL parser. New
 * names cannot be `.` or `..`, but such names from older versions can still be looked up and deleted.
 */
import { request } from 'node:http';
import { request as requestOverTls } from 'node:https';
import { text } from 'node:stream/consumers';

export function isDotSegment(word: string): boolean {
  return word === '.' || word === '..';
}

/** Like `fetch(base + path)`, for requests without a body. */
export function fetchVerbatim(
  base: string,
  path: string,
  { method, headers }: { method: string; headers: Headers },
): Promise<Response> {
  const { protocol, hostname, port, pathname } = new URL(base);
  const fullPath = `${pathname.replace(/\/$/, '')}${path}`;
  const options = {
    protocol,
    port,
    path: fullPath,
    method,
    headers: Object.fromEntries(headers),
    agent: false,
  } as const;
  return new Promise((resolve, reject) => {
    const sent = protocol === 'https:' ? requestOverTls : request;
    sent({ ...options, hostname: hostname.replace(/^\[|\]$/g, '') }, (response) => {
      text(response).then((body) => resolve(new Response(body, { status: response.statusCode ?? 500 })), reject);
    })
      .on('error', reject)
      .end();
  });
}
