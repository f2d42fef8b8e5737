/** Asks the running server to carry out the operator's commands. */
import { connect } from 'node:net';
import { pause } from '../../system/system.ts';
import {
  type Administration,
  type CreatedProject,
  type CreatedToken,
  type CreateTokenRequest,
  type ProjectEntry,
  Refused,
  type TokenEntry,
} from './commands.ts';
import { unusablePath } from './socket-path.ts';
import { type CommandName, LINE_BYTES_MAX, readResponse } from './wire.ts';

/** Longer than a server with a slow disk takes, shorter than an operator's patience. */
const RESPONSE_LIMIT_MS = 30_000;
/** For a server that has more new connections than the system queues: it accepts them within milliseconds. */
const AGAIN_MS = 50;
const TRIES = 100;

/** Nobody listens at the socket. */
export class NobodyListens extends Error {
  constructor(options?: ErrorOptions) {
    super('no server listens for the operator', options);
    this.name = 'NobodyListens';
  }
}

/** Every method may throw `NobodyListens`, and has then done nothing. Otherwise it throws as `Administration` says. */
export class RemoteAdministration implements Administration {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  listProjects(): Promise<ProjectEntry[]> {
    return this.#ask('listProjects', {});
  }

  createProject(request: { name: string }): Promise<CreatedProject> {
    return this.#ask('createProject', request);
  }

  listTokens(request: { project?: string }): Promise<TokenEntry[]> {
    return this.#ask('listTokens', request);
  }

  createToken(request: CreateTokenRequest): Promise<CreatedToken> {
    return this.#ask('createToken', request);
  }

  revokeToken(request: { id: string }): Promise<TokenEntry> {
    return this.#ask('revokeToken', request);
  }

  /** `Result` is not checked: the server is the same program, behind a socket that only its owner can make. */
  async #ask<Result>(command: CommandName, request: unknown): Promise<Result> {
    const line = JSON.stringify({ command, request });
    if (Buffer.byteLength(line) >= LINE_BYTES_MAX) throw new Refused('this is too long for a command');
    const given = readResponse(await exchange(this.#path, line));
    if (given === undefined) throw new Refused('the running server sent an invalid response');
    if ('answer' in given) return given.answer as Result;
    throw new Refused('refused' in given ? given.refused : given.failed);
  }
}

/** The system has queued as many connections as the server allows. Nothing was sent. */
class QueueFull extends Refused {}

/** Sends one line and resolves to all that comes back. */
async function exchange(path: string, line: string): Promise<string> {
  for (let triesLeft = TRIES; ; triesLeft -= 1) {
    try {
      return await exchangeNow(path, line);
    } catch (error) {
      if (!(error instanceof QueueFull) || triesLeft === 1) throw error;
      await pause(AGAIN_MS);
    }
  }
}

function exchangeNow(path: string, line: string): Promise<string> {
  if (unusablePath(path) !== undefined) return Promise.reject(new NobodyListens());
  return new Promise((resolve, reject) => {
    let text = '';
    let isConnected = false;
    const socket = connect(path, () => {
      isConnected = true;
      socket.write(`${line}\n`);
    });
    socket.setEncoding('utf8');
    socket.setTimeout(RESPONSE_LIMIT_MS, () => socket.destroy(new Refused('the running server does not respond')));
    socket.on('data', (chunk: string) => {
      text += chunk;
    });
    socket.once('error', (error: NodeJS.ErrnoException) => reject(explain(error, isConnected)));
    socket.once('close', () => resolve(text));
  });
}

function explain(error: NodeJS.ErrnoException, isConnected: boolean): Error {
  if (error instanceof Refused) return error;
  // Once connected, the server may have received the command: to run it elsewhere too could do it twice.
  if (isConnected) return new Refused(`the running server was cut off (${error.code}): look whether it was done`);
  // A server that was killed left its socket behind, or there is no socket at all.
  if (error.code === 'EAGAIN') return new QueueFull('the running server accepts no connection (EAGAIN)');
  if (['ENOENT', 'ENOTDIR', 'ECONNREFUSED'].includes(error.code ?? '')) return new NobodyListens({ cause: error });
  return new Refused(`cannot ask the running server (${error.code}): run this as the user that it runs as`);
}
