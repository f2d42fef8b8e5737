/** Requests that one worker forwards to another worker of its process. */
import type { CheckpointClaim } from '../../protocol/workflow/checkpoints.ts';
import type { ApiResponse } from '../response.ts';

/** A checkpoint request, unchanged as its endpoint sent it. */
export interface CheckpointRequest {
  caller: CheckpointClaim;
  /** The token from which `caller` was read. */
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
   * Forwards a checkpoint to a worker, and resolves to its response. There is no time limit. Resolves to `undefined` if
   * the worker does not make the call of the checkpoint, or has ended. `hangUp` aborts when the client has disconnected.
   */
  forward(worker: number, checkpoint: CheckpointRequest, hangUp: AbortSignal): Promise<ApiResponse | undefined>;
  /** Handles the checkpoints that other workers forward to this worker. `handle` never rejects. */
  serve(handle: CheckpointHandler): void;
}
