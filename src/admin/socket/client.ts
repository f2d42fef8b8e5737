/** The client of the operator's socket: sends commands to the running server. */
import { connect } from 'node:net';
import { pause } from '../../system/system.ts';
import {
  type Administration,
  CommandRefused,
  type CreatedProject,
  type CreatedToken,
  type CreateTokenRequest,
  type ProjectEntry,
  type TokenEntry,
} from './commands.ts';
import { unusablePath } from './socket-path.ts';
import { type CommandName, LINE_BYTES_MAX, readResponse } from './wire.ts';

/** The time limit for a response: longer than a server with a slow disk needs, but shorter than an operator waits. */
const RESPONSE_TIMEOUT_MS = 30_000;
/**
 * The pause between two tries while the system's queue of new connections is full: the server empties this queue in
 * milliseconds.
 */
const RETRY_PAUSE_MS = 50;
const TRIES = 100;

/** Reports that no server listens at the socket. */
export class NoServerListening extends Error {
  constructor(options?: ErrorOptions) {
    super('no server listens for the operator', options);
    this.name = 'NoServerListening';
  }
}

/** Each method throws `NoServerListening` if no server has received the command, and the errors of `Administration`. */
export class RemoteAdministration implements Administration {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  listProjects(): Promise<ProjectEntry[]> {
    return this.#send('listProjects', {});
  }

  createProject(request: { name: string }): Promise<CreatedProject> {
    return this.#send('createProject', request);
  }

  listTokens(request: { project?: string }): Promise<TokenEntry[]> {
    return this.#send('listTokens', request);
  }

  createToken(request: CreateTokenRequest): Promise<CreatedToken> {
    return this.#send('createToken', request);
  }

  revokeToken(request: { id: string }): Promise<TokenEntry> {
    return this.#send('revokeToken', request);
  }

  /** The result is not validated: the server is the same program, behind a socket that only its owner can create. */
  async #send<Result>(command: CommandName, request: unknown): Promise<Result> {
    const line = JSON.stringify({ command, request });
    if (Buffer.byteLength(line) >= LINE_BYTES_MAX) throw new CommandRefused('this is too long for a command');
    const response = readResponse(await exchange(this.#path, line));
    if (response === undefined) throw new CommandRefused('the running server sent an invalid response');
    if ('answer' in response) return response.answer as Result;
    throw new CommandRefused('refused' in response ? response.refused : response.failed);
  }
}

/** The system's queue of new connections is full. The command was not sent. */
class QueueFull extends CommandRefused {}

/** Sends one line and resolves to the whole response. Retries while the connection queue is full. */
async function exchange(path: string, line: string): Promise<string> {
  for (let triesLeft = TRIES; ; triesLeft -= 1) {
    try {
      return await exchangeNow(path, line);
    } catch (error) {
      if (!(error instanceof QueueFull) || triesLeft === 1) throw error;
      await pause(RETRY_PAUSE_MS);
    }
  }
}

function exchangeNow(path: string, line: string): Promise<string> {
  if (unusablePath(path) !== undefined) return Promise.reject(new NoServerListening());
  return new Promise((resolve, reject) => {
    let text = '';
    let isConnected = false;
    const socket = connect(path, () => {
      isConnected = true;
      socket.write(`${line}\n`);
    });
    socket.setEncoding('utf8');
    socket.setTimeout(RESPONSE_TIMEOUT_MS, () =>
      socket.destroy(new CommandRefused('the running server does not respond')),
    );
    socket.on('data', (chunk: string) => {
      text += chunk;
    });
    socket.once('error', (error: NodeJS.ErrnoException) => reject(explain(error, isConnected)));
    socket.once('close', () => resolve(text));
  });
}

function explain(error: NodeJS.ErrnoException, isConnected: boolean): Error {
  if (error instanceof CommandRefused) return error;
  // Once connected, the server may have received the command. So this process must not run the command itself.
  if (isConnected) {
    return new CommandRefused(
      `the connection to the running server was lost (${error.code}): check whether the command was run`,
    );
  }
  // ECONNREFUSED: a killed server has left its socket. ENOENT, ENOTDIR: there is no socket.
  if (error.code === 'EAGAIN') return new QueueFull('the running server accepts no connection (EAGAIN)');
  if (['ENOENT', 'ENOTDIR', 'ECONNREFUSED'].includes(error.code ?? '')) return new NoServerListening({ cause: error });
  return new CommandRefused(
    `cannot reach the running server (${error.code}): run this command as the user that it runs as`,
  );
}
