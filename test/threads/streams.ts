/** Reads the live streams of all workers. */
import { request } from 'node:http';
import { DEVELOPMENT_TOKEN } from '../../bench/waypost-process.ts';
import { eventually } from '../support/eventually.ts';
import { call, times } from './calls.ts';

/** A live stream over a connection of its own; `texts` has what came of it. */
async function watchLog(url: string, token: string, texts: string[]): Promise<void> {
  const index = texts.push('') - 1;
  const asked = request(`${url}/v2/waypost/live`, {
    agent: false,
    headers: { authorization: `Bearer ${token}` },
  });
  asked.once('response', (response) => {
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      texts[index] += chunk;
    });
  });
  asked.end();
  await eventually('a stream', () => texts[index]?.includes('event: open'));
}

/** What every one of some streams shows of messages that come over many connections. */
export async function seeAll(
  url: string,
  endpoint: string,
  token = DEVELOPMENT_TOKEN,
): Promise<{ seen: string[][]; expected: string[] }> {
  const texts: string[] = [];
  // Chance gives a worker none of 12 connections once in 2,000 times, which shows in no result.
  await Promise.all(times(12, () => watchLog(url, token, texts)));
  const replies = await Promise.all(times(40, () => call('POST', `${url}/v2/publish/${endpoint}`, {}, token)));
  const ids = replies.map(({ text }) => (JSON.parse(text) as { messageId: string }).messageId);
  const expected = ids.flatMap((id) => ['CREATED', 'ACTIVE', 'DELIVERED'].map((state) => `${id} ${state}`)).toSorted();
  const seenIn = (text: string): string[] =>
    [...text.matchAll(/^event: entry\n.*\ndata: (.*)$/gm)]
      .map(([, data = '']) => JSON.parse(data) as { messageId: string; state: string })
      .map(({ messageId, state }) => `${messageId} ${state}`)
      .filter((entry) => ids.some((id) => entry.startsWith(id)));
  await eventually('all entries in all streams', () => texts.every((text) => seenIn(text).length >= expected.length));
  return { seen: texts.map((text) => seenIn(text).toSorted()), expected };
}
