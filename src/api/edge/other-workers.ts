/** What the HTTP interface asks of the other workers of its process. */
import type { CheckpointClaim } from '../../protocol/workflow/checkpoints.ts';
import type { ApiResponse } from '../response.ts';

/** A checkpoint as its endpoint has sent it. */
export interface CheckpointRequest {
  caller: CheckpointClaim;
  /** That names `caller`. */
  token: string;
  body: Uint8Array<ArrayBuffer>;
  callerIp: string | undefined;
}

export type CheckpointHandler = (
  checkpoint: CheckpointRequest,
  hangUp: AbortSignal,
) => Promise<ApiResponse | undefined>;

export interface OtherWorkers {
  /** The number of this worker, counted from 0. */
  readonly own: number;
  /**
   * What the worker with that number answers, which may take as long as the endpoint is willing to wait. `undefined`: it makes
   * no such call, or has ended. `hangUp` aborts when nobody waits for the answer any more.
   */
  forward(worker: number, checkpoint: CheckpointRequest, hangUp: AbortSignal): Promise<ApiResponse | undefined>;
  /** Has `carryOut`, which never rejects, answer what others send to this worker. */
  serve(carryOut: CheckpointHandler): void;
}
