/** Starts the real Waypost server on a data folder, like an operator. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ListeningProcess, type StartOptions, startListening } from './child-process.ts';

/** The published development token (contract M 2.3). */
export const DEVELOPMENT_TOKEN = 'eyJVc2VySUQiOiJkZWZhdWx0VXNlciIsIlBhc3N3b3JkIjoiZGVmYXVsdFBhc3N3b3JkIn0=';

const CHECKOUT = fileURLToPath(new URL('..', import.meta.url));

export interface WaypostOptions extends StartOptions {
  dataDir: string;
  /** Default: a free port. */
  port?: number;
  /** Default: `dev`, with development credentials and loopback destinations allowed. */
  command?: 'dev' | 'serve';
  /** Additional command-line flags. */
  flags?: string[];
  /** The folder of the checkout to run; default: this one. */
  program?: string;
}

/** The server listens on 127.0.0.1. */
export function startWaypost(options: WaypostOptions): Promise<ListeningProcess> {
  const { dataDir, port = 0, command = 'dev', flags = [], program = CHECKOUT, ...start } = options;
  const cli = join(program, 'bin/waypost.js');
  return startListening(
    [cli, command, '--port', String(port), '--data-dir', dataDir, '--log-format', 'json', ...flags],
    start,
  );
}
