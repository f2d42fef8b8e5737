/** The command line of this process. */
import { buffer } from 'node:stream/consumers';
import { runCommandLine } from './command-line.ts';

const isAttended = process.stdin.isTTY === true && process.stderr.isTTY === true;

/** A full or failing disk says so, or whoever reads the output too slowly. */
const LINE_LOST: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT', 'EIO', 'EAGAIN']);

// Who reads the output may have seen enough, as `head` has. A server handles errors itself: to it this is one. But it
// goes on without a line of its log that the disk does not take: what it serves is worth more.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  const isServer = process.listenerCount('uncaughtException') > 0;
  if (isServer && LINE_LOST.has(error.code)) return;
  if (isServer || error.code !== 'EPIPE') throw error;
  process.exit();
});

const exitCode = await runCommandLine(process.argv.slice(2), {
  env: process.env,
  print: (text) => process.stdout.write(text),
  complain: (text) => process.stderr.write(text),
  readInput: () => buffer(process.stdin),
  isInteractive: process.stdout.isTTY === true,
  ...(isAttended && { ask }),
  color: process.stdout.isTTY === true && process.env['NO_COLOR'] === undefined,
});
// All is done. What is still under way would only delay the end, such as a look-up of a name for an attempt that is over.
for (const stream of [process.stdout, process.stderr]) {
  await new Promise((written) => {
    stream.write('', written);
  });
}
process.exit(exitCode);

async function ask(question: string, isSecret?: 'secret'): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  const { Writable } = await import('node:stream');
  // What is typed is shown by whoever writes to the output: a secret is written to nothing.
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() });
  const output = isSecret ? unseen : process.stderr;
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  if (isSecret) process.stderr.write(question); // only now, when the terminal itself shows nothing any more
  lines.on('SIGINT', () => {
    lines.close();
    process.stderr.write('\n');
    process.exit(130); // as a shell says of Ctrl-C
  });
  try {
    return await lines.question(isSecret ? '' : question);
  } finally {
    lines.close();
    if (isSecret) process.stderr.write('\n');
  }
}
