/** Waits for the signals that stop a long-running command: Ctrl-C, or SIGTERM from a supervisor. */

export type Signal = 'SIGTERM' | 'SIGINT';

const NUMBER_BY_SIGNAL: Readonly<Record<Signal, number>> = { SIGTERM: 15, SIGINT: 2 };
const SIGNALS: readonly Signal[] = ['SIGTERM', 'SIGINT'];

/** The exit code of shells for a process that a signal has terminated. */
export function exitCodeOf(signal: Signal): number {
  return 128 + NUMBER_BY_SIGNAL[signal];
}

/**
 * Resolves at the next SIGTERM or SIGINT. Until then these signals do not terminate the process. The first process of a
 * container (PID 1) receives these signals only if it listens for them.
 */
export function nextSignal(): Promise<Signal> {
  return new Promise((resolve) => {
    const listeners = SIGNALS.map((signal) => {
      const listener = () => {
        for (const [name, each] of listeners) process.removeListener(name, each);
        resolve(signal);
      };
      process.on(signal, listener);
      return [signal, listener] as const;
    });
  });
}
