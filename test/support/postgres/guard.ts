/** Stops a server and removes its folder, even if the process that started it was killed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * A shell script that waits until its standard input ends, which also happens when our process dies. Then the script
 * stops the process in the pid file, if that process runs in the file's folder: a killed server leaves the file behind,
 * and another process may have its pid. A frozen server handles the signal when it continues, and stops its children.
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
  /** Stops the server at once, as in a crash, and removes the folder. */
  finish(): Promise<void>;
}

/**
 * `pidFile` is in the working directory of the server. Neither path has symbolic links. `folder` is removed with its
 * contents.
 */
export function guard(pidFile: string, folder: string): Guard {
  // Detached, so that it survives an interrupt on the terminal, which goes to the whole process group.
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
