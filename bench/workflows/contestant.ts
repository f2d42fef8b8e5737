/** What the comparison needs of a system that executes runs: a server and an endpoint, each a process of its own. */
import type { Traffic } from './endpoint-process.ts';

export interface Contestant {
  /** As the report names it, with its version. */
  name: string;
  serverPid: number;
  endpointPid: number;
  /** Starts run `number` of the program; resolves when the server has answered that it has it. */
  start(number: number): Promise<void>;
  /** Told the number of each run that has ended. One listener. */
  listen(onEnded: (number: number) => void): void;
  traffic(): Promise<Traffic>;
  /** Asks the server what the runs returned; throws unless all ended once, with the right result. */
  verify(numbers: readonly number[]): Promise<void>;
  end(): Promise<void>;
}
