/** The entry point: runs the command line of this process. */
import { buffer } from 'node:stream/consumers';
import { runCommandLine } from './command-line.ts';

const canPrompt = process.stdin.isTTY === true && process.stderr.isTTY === true;

/** Error codes for a full or failing disk, or for a pipe whose reader is too slow. */
const LOST_LINE_ERRORS: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT', 'EIO', 'EAGAIN']);

// A reader such as `head` may close the output early. A command then exits, but a server treats the closed output as an
// error. When the disk rejects a line of a server's log, the server continues: serving is more important than logging.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  const isServer = process.listenerCount('uncaughtException') > 0;
  if (isServer && LOST_LINE_ERRORS.has(error.code)) return;
  if (isServer || error.code !== 'EPIPE') throw error;
  process.exit();
});

const exitCode = await runCommandLine(process.argv.slice(2), {
  env: process.env,
  print: (text) => process.stdout.write(text),
  printError: (text) => process.stderr.write(text),
  readInput: () => buffer(process.stdin),
  isInteractive: process.stdout.isTTY === true,
  ...(canPrompt && { ask }),
  color: process.stdout.isTTY === true && process.env['NO_COLOR'] === undefined,
});
// The work is done. Pending operations, such as a DNS look-up for a finished attempt, would only delay the exit.
for (const stream of [process.stdout, process.stderr]) {
  await new Promise((resolve) => {
    stream.write('', resolve);
  });
}
process.exit(exitCode);

async function ask(question: string, isSecret?: 'secret'): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  const { Writable } = await import('node:stream');
  // readline echoes the typed characters to its output: for a secret, discard them.
  const discarded = new Writable({ write: (_chunk, _encoding, done) => done() });
  const output = isSecret ? discarded : process.stderr;
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  if (isSecret) process.stderr.write(question); // only now, when the terminal no longer echoes
  lines.on('SIGINT', () => {
    lines.close();
    process.stderr.write('\n');
    process.exit(130); // the exit code of shells after Ctrl-C
  });
  try {
    return await lines.question(isSecret ? '' : question);
  } finally {
    lines.close();
    if (isSecret) process.stderr.write('\n');
  }
}
