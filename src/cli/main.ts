/** The command line of this process. */
import { buffer } from 'node:stream/consumers';
import { runCommandLine } from './command-line.ts';

const isAttended = process.stdin.isTTY === true && process.stderr.isTTY === true;

// Who reads the output may have seen enough, as `head` has. A server handles errors itself: to it this is one.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE' || process.listenerCount('uncaughtException') > 0) throw error;
  process.exit();
});

process.exitCode = await runCommandLine(process.argv.slice(2), {
  env: process.env,
  print: (text) => process.stdout.write(text),
  complain: (text) => process.stderr.write(text),
  readInput: () => buffer(process.stdin),
  isInteractive: process.stdout.isTTY === true,
  ...(isAttended && { ask }),
  color: process.stdout.isTTY === true && process.env['NO_COLOR'] === undefined,
});

async function ask(question: string, isSecret?: 'secret'): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  const { Writable } = await import('node:stream');
  // What is typed is shown by whoever writes to the output: a secret is written to nothing.
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() });
  if (isSecret) process.stderr.write(question);
  const output = isSecret ? unseen : process.stderr;
  const lines = createInterface({ input: process.stdin, output, terminal: true });
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
