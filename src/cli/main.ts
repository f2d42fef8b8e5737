/** The command line of this process. */
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
  isInteractive: process.stdout.isTTY === true,
  ...(isAttended && { ask }),
  color: process.stdout.isTTY === true && process.env['NO_COLOR'] === undefined,
});

async function ask(question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await lines.question(question);
  } finally {
    lines.close();
  }
}
