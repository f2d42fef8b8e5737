/** The command line of this process. */
import { runCommandLine } from './command-line.ts';

process.exitCode = await runCommandLine(process.argv.slice(2), {
  env: process.env,
  print: (text) => process.stdout.write(text),
  complain: (text) => process.stderr.write(text),
  isInteractive: process.stdout.isTTY === true,
  color: process.stdout.isTTY === true && process.env['NO_COLOR'] === undefined,
});
