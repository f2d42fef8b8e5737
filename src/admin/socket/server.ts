/**
 * Receives the operator's commands over a socket in the data folder, and runs one command at a time (docs/decisions/010).
 */
import { chmodSync, lstatSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { EventLog } from '../../engine/ports.ts';
import { type Administration, CommandRefused } from './commands.ts';
import { unusablePath } from './socket-path.ts';
import { LINE_BYTES_MAX, readCommand, runCommand, type SocketResponse } from './wire.ts';

export interface OperatorSocket {
  close(): Promise<void>;
}

/** Limits how long a client may be silent: a client sends its command in one write right after it connects. */
const IDLE_TIMEOUT_MS = 10_000;
/** Maximum connections without a command. One more connection closes the oldest, so that idle clients block nobody. */
const IDLE_MAX = 1_000;

/**
 * Listens at `path`. Requires no token: a user who can open the socket can also read the database and the encryption key.
 * The caller has the lock of the database, so an existing socket is left over from a process that has ended. Rejects when
 * the system or the path does not allow a socket.
 */
export async function listenForOperator(
  path: string,
  administration: Administration,
  log: EventLog,
): Promise<OperatorSocket> {
  const reason = unusablePath(path);
  if (reason !== undefined) throw new Error(reason);
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // If other users can write to the folder of the database, another user may have created the socket's folder first.
  if (!isOwnFolder(folder)) throw new Error(`${folder} is not a folder of this user`);
  chmodSync(folder, 0o700); // an existing folder may have another mode
  rmSync(path, { force: true });
  const listener = new OperatorListener(administration, log);
  await listener.listen(path);
  chmodSync(path, 0o600);
  return { close: () => listener.close() };
}

function isOwnFolder(path: string): boolean {
  const found = lstatSync(path);
  return found.isDirectory() && found.uid === process.getuid?.();
}

class OperatorListener {
  readonly #administration: Administration;
  readonly #log: EventLog;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Sockets that have not sent a command yet, oldest first. */
  readonly #idle = new Set<Socket>();
  /** Settles when the last command has run. Concurrent commands could create the same name twice. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(administration: Administration, log: EventLog) {
    this.#administration = administration;
    this.#log = log;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ path, backlog: IDLE_MAX }, () => {
        this.#server.off('error', reject);
        this.#server.on('error', (error) => this.#log.warn('operator_socket_failed', { reason: error.message }));
        resolve();
      });
    });
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    await this.#last;
    for (const socket of this.#sockets) socket.destroySoon();
    await closed;
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    this.#idle.add(socket);
    const [oldest] = this.#idle;
    if (this.#idle.size > IDLE_MAX) oldest?.destroy();
    let text = '';
    socket.setEncoding('utf8');
    socket.setTimeout(IDLE_TIMEOUT_MS, () => socket.destroy());
    socket.on('error', () => socket.destroy()); // the client has disconnected
    socket.on('close', () => {
      this.#sockets.delete(socket);
      this.#idle.delete(socket);
    });
    const read = (chunk: string): void => {
      text += chunk;
      const end = text.indexOf('\n');
      if (end < 0 && text.length <= LINE_BYTES_MAX) return;
      socket.off('data', read);
      this.#idle.delete(socket);
      socket.setTimeout(0); // after its command, the client waits for this server
      this.#last = this.#last.then(async () => {
        socket.end(`${JSON.stringify(await this.#respond(end < 0 ? '' : text.slice(0, end)))}\n`);
      });
    };
    socket.on('data', read);
  }

  /** Never rejects. */
  async #respond(line: string): Promise<SocketResponse> {
    try {
      const command = readCommand(line);
      const result = await runCommand(this.#administration, command);
      this.#log.info('operator_command', { kind: command.command });
      return { answer: result };
    } catch (error) {
      if (error instanceof CommandRefused) return { refused: error.message };
      this.#log.error('operator_command_failed', { error: error instanceof Error ? error.message : String(error) });
      return { failed: 'the server could not do it; its log says why' };
    }
  }
}
