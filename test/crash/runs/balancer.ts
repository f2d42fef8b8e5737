/** A simple load balancer: forwards each connection to the next of the servers that are up. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { originOf } from '../../support/listen.ts';

export class Balancer {
  readonly #server: Server;
  readonly #clients = new Set<Socket>();
  readonly #up: () => readonly string[];
  #count = 0;

  private constructor(server: Server, up: () => readonly string[]) {
    this.#server = server;
    this.#up = up;
    server.on('connection', (client: Socket) => this.#connect(client));
  }

  /** `up`: the URLs of the servers for new connections. Existing connections stay where they are. */
  static async open(up: () => readonly string[]): Promise<Balancer> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Balancer(server, up);
  }

  get url(): string {
    return originOf(this.#server);
  }

  close(): void {
    this.#server.close();
    for (const client of this.#clients) client.destroy();
  }

  #connect(client: Socket): void {
    this.#count += 1;
    const urls = this.#up();
    const url = urls[this.#count % urls.length];
    if (url === undefined) return void client.destroy();
    this.#clients.add(client);
    const server = connect(Number(new URL(url).port), '127.0.0.1');
    client.pipe(server).pipe(client);
    const end = () => {
      this.#clients.delete(client);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on('error', end).on('close', end);
  }
}
