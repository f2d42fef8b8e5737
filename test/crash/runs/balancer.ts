/** Stands before several servers as one of the simplest kind does: each connection goes to the next of those that are up. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

export class Balancer {
  readonly #server: Server;
  readonly #clients = new Set<Socket>();
  #ports: readonly number[] = [];
  #count = 0;

  private constructor(server: Server) {
    this.#server = server;
    server.on('connection', (client: Socket) => this.#connect(client));
  }

  static async open(): Promise<Balancer> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Balancer(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** New connections go to these ports; those there are stay where they are. */
  pointTo(ports: readonly number[]): void {
    this.#ports = ports;
  }

  close(): void {
    this.#server.close();
    for (const client of this.#clients) client.destroy();
  }

  #connect(client: Socket): void {
    this.#count += 1;
    const port = this.#ports[this.#count % this.#ports.length];
    if (port === undefined) return void client.destroy();
    this.#clients.add(client);
    const server = connect(port, '127.0.0.1');
    client.pipe(server).pipe(client);
    const end = () => {
      this.#clients.delete(client);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on('error', end).on('close', end);
  }
}
