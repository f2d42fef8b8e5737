import { describe, expect, it } from 'vitest';
import { RequestSplitter } from '../../bench/request-splitter.ts';

function bodiesOf(chunks: Buffer[]): string[] {
  const bodies: string[] = [];
  const splitter = new RequestSplitter((buffer, start, end) => bodies.push(buffer.toString('latin1', start, end)));
  for (const chunk of chunks) splitter.push(chunk);
  return bodies;
}

const STREAM = Buffer.from(
  'POST / HTTP/1.1\r\nhost: a\r\nContent-Length: 5\r\n\r\nfirst' +
    'POST / HTTP/1.1\r\ncontent-length:6\r\n\r\nsecond' +
    'GET / HTTP/1.1\r\nhost: a\r\n\r\n',
);

describe('RequestSplitter', () => {
  it('finds the same bodies wherever the stream is split into chunks', () => {
    for (let cut = 0; cut <= STREAM.length; cut += 1) {
      expect(bodiesOf([STREAM.subarray(0, cut), STREAM.subarray(cut)])).toEqual(['first', 'second', '']);
    }
    expect(bodiesOf(Array.from(STREAM, (byte) => Buffer.of(byte)))).toEqual(['first', 'second', '']);
  });

  it('throws on a chunked message', () => {
    const chunked = Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
    expect(() => bodiesOf([chunked])).toThrow('chunked');
  });
});
