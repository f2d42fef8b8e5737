/** The interface of a system that executes runs: a server and an endpoint, each in its own process. */
import type { Traffic } from './endpoint-process.ts';

export interface Contestant {
  /** The name in the report, with its version. */
  name: string;
  serverPid: number;
  endpointPid: number;
  /** Starts run `number` of the program; resolves when the server has accepted the run. */
  start(number: number): Promise<void>;
  /** Sets the listener for the numbers of runs that have ended. */
  listen(onEnded: (number: number) => void): void;
  traffic(): Promise<Traffic>;
  /** Reads the results of the runs from the server; throws unless all ended once, with the right result. */
  verify(numbers: readonly number[]): Promise<void>;
  end(): Promise<void>;
}
