/** The handling of connections (contract M 29.153). */
import { expect } from 'vitest';
import { RawConnection } from '../../api/support/raw-http.ts';
import { type Section, statement } from '../support/statement.ts';

export const connections: Section = {
  title: 'Half-closed connections',
  statements: [
    statement(
      'M153',
      'A client that closes its side of the connection after complete requests gets all responses before the connection ends.',
      async (server) => {
        const { hostname, port } = new URL(server.url);
        const head = `Host: ${hostname}\r\nAuthorization: Bearer ${server.token}\r\nUpstash-Delay: 1h\r\n`;
        const client = new RawConnection(Number(port), hostname);
        client.send(`POST /v2/publish/${server.destination('/a')} HTTP/1.1\r\n${head}\r\n`.repeat(100));
        client.socket.end();
        await client.closed;
        expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(Array(100).fill('HTTP/1.1 200'));
      },
    ),
  ],
};
