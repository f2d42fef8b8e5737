/**
 * The `Authorization` headers that an endpoint gets, and their number. Node shows only the first one, so the test reads the raw
 * headers.
 */
import { expect, it } from 'vitest';
import { claimOf, openDelivery, type Received, startEndpoint, untouched } from './support.ts';

const linesOf = ({ rawHeaders }: Received): string[] =>
  rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'authorization');

it.each([
  ['the forwarded one alone, though the URL names a user', { Authorization: ['Bearer own'] }, ['Bearer own']],
  ['one made of the URL where none is forwarded', {}, [`Basic ${btoa('user:secret')}`]],
])('an endpoint gets %s', async (_, header, expected) => {
  const endpoint = await startEndpoint();
  const url = endpoint.origin.replace('//', '//user:secret@');
  const outcome = await openDelivery().attempt(claimOf(url, { header, origin: endpoint.origin }), untouched());
  expect(outcome).toMatchObject({ kind: 'responded', status: 200 });
  expect(endpoint.received.map(linesOf)).toEqual([expected]);
});
