/** How is a command that runs on and on told to end? By Ctrl-C, or by whoever supervises it. */

export type Signal = 'SIGTERM' | 'SIGINT';

const SIGNALS: readonly Signal[] = ['SIGTERM', 'SIGINT'];

/** Resolves at the next signal to end. Until then, and only until then, signals do not end the process. */
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
