/** How is a command that runs on and on told to end? By Ctrl-C, or by whoever supervises it. */

export type Signal = 'SIGTERM' | 'SIGINT';

const NUMBER_BY_SIGNAL: Readonly<Record<Signal, number>> = { SIGTERM: 15, SIGINT: 2 };
const SIGNALS: readonly Signal[] = ['SIGTERM', 'SIGINT'];

/** How a shell says that a signal has ended a process. */
export function exitCodeOf(signal: Signal): number {
  return 128 + NUMBER_BY_SIGNAL[signal];
}

/**
 * Resolves at the next signal to end. Until then, and only until then, signals do not end the process. Where it is the first
 * of its container (PID 1), they do not end it without this either.
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
