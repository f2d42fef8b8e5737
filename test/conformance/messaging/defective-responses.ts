/** Answers that a strict parser refuses, and clients accept (contract M 7.3.6, 29.157). */
import net from 'node:net';
import { expect } from 'vitest';
import { listen } from '../../support/listen.ts';
import { type Section, statement } from '../support/statement.ts';

const DEFECTIVE = [
  'HTTP/1.1 200 OK\nContent-Length: 2\n\nok',
  'HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nX-A : b\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
];

export const defectiveResponses: Section = {
  title: 'Defective responses',
  statements: [
    statement(
      'M157',
      'A response whose head has a harmless defect is a success, and its endpoint is called once.',
      async (server) => {
        let answered = 0;
        const endpoint = net.createServer((socket) =>
          socket.on('error', () => {}).once('data', () => socket.write(DEFECTIVE[answered++] ?? '')),
        );
        const origin = await listen(endpoint);
        try {
          for (const [index, answer] of DEFECTIVE.entries()) {
            const { messageId } = await server.post(`/v2/publish/${origin}`);
            expect(await server.finished(messageId), answer).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
            expect(answered).toBe(index + 1);
          }
        } finally {
          endpoint.close();
        }
      },
    ),
  ],
};
