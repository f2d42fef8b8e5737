/** Takes the operator's commands over a socket in the data folder, one after the other (docs/decisions/010). */
import { chmodSync, lstatSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { EventLog } from '../../engine/ports.ts';
import { type Administration, Refused } from './commands.ts';
import { unusablePath } from './socket-path.ts';
import { LINE_BYTES_MAX, readCommand, runCommand, type SocketResponse } from './wire.ts';

export interface OperatorSocket {
  close(): Promise<void>;
}

/** An operator's command is sent in one go. */
const IDLE_MS = 10_000;
/** Connections that have not sent a command yet. One more ends the oldest of them: whoever sends nothing keeps nobody out. */
const SILENT_MAX = 1_000;

/**
 * Listens at `path`. It asks for no token: a user who can open the socket can also read the database and the encryption
 * key. The caller holds the lock of the database, so no process listens any more at a socket that is already there.
 * Rejects when the system or the path does not allow it.
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
  // Where other users can write to the folder of the database, one of them may have made this folder first.
  if (!isOwnFolder(folder)) throw new Error(`${folder} is not a folder of this user`);
  chmodSync(folder, 0o700); // one that was there before
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
  /** Those of them that have not sent a command yet, oldest first. */
  readonly #silent = new Set<Socket>();
  /** The command before this one. Commands run one at a time, because two at once would not see each other's names. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(administration: Administration, log: EventLog) {
    this.#administration = administration;
    this.#log = log;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ path, backlog: SILENT_MAX }, () => {
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
    this.#silent.add(socket);
    const [oldest] = this.#silent;
    if (this.#silent.size > SILENT_MAX) oldest?.destroy();
    let text = '';
    socket.setEncoding('utf8');
    socket.setTimeout(IDLE_MS, () => socket.destroy());
    socket.on('error', () => socket.destroy()); // the operator went away
    socket.on('close', () => {
      this.#sockets.delete(socket);
      this.#silent.delete(socket);
    });
    const read = (chunk: string): void => {
      text += chunk;
      const end = text.indexOf('\n');
      if (end < 0 && text.length <= LINE_BYTES_MAX) return;
      socket.off('data', read);
      this.#silent.delete(socket);
      socket.setTimeout(0); // now the client waits for this server
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
      const answer = await runCommand(this.#administration, command);
      this.#log.info('operator_command', { kind: command.command });
      return { answer };
    } catch (error) {
      if (error instanceof Refused) return { refused: error.message };
      this.#log.error('operator_command_failed', { error: error instanceof Error ? error.message : String(error) });
      return { failed: 'the server could not do it; its log says why' };
    }
  }
}
