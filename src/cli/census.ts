/** Describes the content of a store in one line. */
import type { Examination } from '../operations/examine.ts';

/** `undefined`: the store has the schema of an older version. */
export function censusLine(census: Examination['census'] | undefined): string {
  if (census === undefined) return 'a store of an older version, which the next start of a server brings to this one';
  const { unfinished, inFlight, dead, queues, flowKeys } = census;
  return `${unfinished} unfinished messages (${inFlight} in flight), ${dead} dead, ${queues} queues, ${flowKeys} flow-control keys`;
}
