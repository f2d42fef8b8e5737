/** Forwards checkpoints to the worker that makes the call. A port connects each pair of workers of a process. */
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import type { CheckpointHandler, CheckpointRequest, OtherWorkers } from '../../api/edge/other-workers.ts';
import type { ApiResponse } from '../../api/response.ts';
import { PendingCalls } from './pending-calls.ts';

/** The ports from one worker to the other workers. */
export interface WorkerPorts {
  own: number;
  /** The ports by the number of the other worker. */
  ports: ReadonlyMap<number, MessagePort>;
}

type Message =
  | { kind: 'request'; id: number; checkpoint: CheckpointRequest }
  /** The client that sent the checkpoint has disconnected. */
  | { kind: 'disconnected'; id: number }
  /** The response. The value is absent if the worker makes no such call. */
  | { kind: 'response'; id: number; value?: ApiResponse };

interface OtherWorker {
  port: MessagePort;
  calls: PendingCalls<ApiResponse>;
}

/** Creates the ports that connect each of `count` workers with every other worker. */
export function connectAll(count: number): WorkerPorts[] {
  const all = Array.from({ length: count }, (_, own) => ({ own, ports: new Map<number, MessagePort>() }));
  for (const one of all) {
    for (const other of all.slice(one.own + 1)) {
      const { port1, port2 } = new MessageChannel();
      one.ports.set(other.own, port1);
      other.ports.set(one.own, port2);
    }
  }
  return all;
}

export class OtherThreads implements OtherWorkers {
  readonly own: number;
  readonly #others = new Map<number, OtherWorker>();

  constructor({ own, ports }: WorkerPorts) {
    this.own = own;
    for (const [number, port] of ports) this.#others.set(number, { port, calls: new PendingCalls() });
  }

  /**
   * Has no timeout: a thread that does not respond hangs or waits for the store, and an HTTP request to this thread would
   * wait too. If this worker saved the checkpoint instead, the other worker might report the same checkpoint as `lost`.
   */
  async forward(
    worker: number,
    checkpoint: CheckpointRequest,
    disconnect: AbortSignal,
  ): Promise<ApiResponse | undefined> {
    const other = this.#others.get(worker);
    if (!other) return undefined;
    let reportDisconnect = (): void => {};
    const response = await other.calls.call((id) => {
      reportDisconnect = () => send(other.port, { kind: 'disconnected', id });
      send(other.port, { kind: 'request', id, checkpoint });
      if (disconnect.aborted) reportDisconnect();
      else disconnect.addEventListener('abort', reportDisconnect);
    });
    disconnect.removeEventListener('abort', reportDisconnect);
    return response;
  }

  serve(handle: CheckpointHandler): void {
    for (const [number, { port, calls }] of this.#others) {
      const disconnects = new Map<number, AbortController>();
      port.on('message', async (message: Message) => {
        const { id } = message;
        if (message.kind === 'response') return calls.settle(id, message);
        if (message.kind === 'disconnected') return disconnects.get(id)?.abort();
        const disconnect = new AbortController();
        disconnects.set(id, disconnect);
        const value = await handle(message.checkpoint, disconnect.signal);
        disconnects.delete(id);
        send(port, { kind: 'response', id, ...(value && { value }) });
      });
      port.on('close', () => {
        this.#others.delete(number);
        calls.settleAll();
      });
    }
  }

  /** Disconnects from the other workers, which continue. */
  close(): void {
    for (const { port } of this.#others.values()) port.close();
  }
}

function send(port: MessagePort, message: Message): void {
  port.postMessage(message);
}
