/** Who ends a server and removes its folder, even if the process that started it was killed? */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * A shell that waits until its standard input ends, which the death of our process does too. What it ends is the
 * process that the file names, if it really works in the file's folder: a killed server leaves the file behind, and its
 * number may belong to another process by now. One that was frozen hears of its end when it goes on, and ends its children.
 */
const SCRIPT = `
cat >/dev/null
pid=$(head -n 1 "$1" 2>/dev/null)
if [ -n "$pid" ] && { [ ! -d /proc/self ] || [ "$(readlink "/proc/$pid/cwd")" = "$(dirname "$1")" ]; }; then
  kill -QUIT "$pid" 2>/dev/null
  kill -CONT "$pid" 2>/dev/null
  while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
fi
until rm -rf "$2" 2>/dev/null; do sleep 0.02; done
`;

export interface Guard {
  /** Ends the server at once, as a crash would, and removes the folder. */
  finish(): Promise<void>;
}

/**
 * `pidFile` is in the folder that the server works in. Both paths without symbolic links; `folder` is removed with all
 * that is in it.
 */
export function guard(pidFile: string, folder: string): Guard {
  // Detached: an interrupt on the terminal goes to the whole group of processes, and it must outlive that.
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'guard', pidFile, folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  const ended = once(shell, 'close');
  shell.unref();
  return {
    finish: async () => {
      shell.ref();
      shell.stdin.end();
      await ended;
    },
  };
}
