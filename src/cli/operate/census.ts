import type { Examination } from '../../admin/examine.ts';

/** Describes the content of a store in one line. */
export function censusLine(census: Examination['census']): string {
  const { unfinished, inFlight, dead, queues, flowKeys } = census;
  return `${unfinished} unfinished messages (${inFlight} in flight), ${dead} dead, ${queues} queues, ${flowKeys} flow-control keys`;
}
