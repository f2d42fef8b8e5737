/** Takes checkpoints to the worker that makes their call: each two workers of a process talk over a port of their own. */
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import type { CheckpointHandler, CheckpointRequest, OtherWorkers } from '../../api/edge/other-workers.ts';
import type { ApiResponse } from '../../api/response.ts';
import { PendingCalls } from './pending-calls.ts';

/** What one worker needs to talk to the others. */
export interface PortsToOthers {
  own: number;
  /** By the number of the other worker. */
  ports: ReadonlyMap<number, MessagePort>;
}

type Message =
  | { kind: 'request'; id: number; checkpoint: CheckpointRequest }
  /** The caller no longer waits for the response. */
  | { kind: 'hungUp'; id: number }
  /** Without `value`: the worker makes no such call. */
  | { kind: 'response'; id: number; value?: ApiResponse };

interface Other {
  port: MessagePort;
  pending: PendingCalls<ApiResponse>;
}

/** Connects each of `count` workers with each other one. */
export function connectAll(count: number): PortsToOthers[] {
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
  readonly #others = new Map<number, Other>();

  constructor({ own, ports }: PortsToOthers) {
    this.own = own;
    for (const [number, port] of ports) this.#others.set(number, { port, pending: new PendingCalls() });
  }

  /**
   * There is no time limit: a thread that does not respond is blocked or waits for the store, as do its own HTTP clients. If this
   * thread saved the checkpoint instead, the other one could report it as `lost` although it is saved.
   */
  async forward(worker: number, checkpoint: CheckpointRequest, hangUp: AbortSignal): Promise<ApiResponse | undefined> {
    const other = this.#others.get(worker);
    if (!other) return undefined;
    let tell = (): void => {};
    const response = await other.pending.ask((id) => {
      tell = () => send(other.port, { kind: 'hungUp', id });
      send(other.port, { kind: 'request', id, checkpoint });
      if (hangUp.aborted) tell();
      else hangUp.addEventListener('abort', tell);
    });
    hangUp.removeEventListener('abort', tell);
    return response;
  }

  serve(carryOut: CheckpointHandler): void {
    for (const [number, { port, pending }] of this.#others) {
      const hangUps = new Map<number, AbortController>();
      port.on('message', async (message: Message) => {
        const { id } = message;
        if (message.kind === 'response') return pending.settle(id, message);
        if (message.kind === 'hungUp') return hangUps.get(id)?.abort();
        const hangUp = new AbortController();
        hangUps.set(id, hangUp);
        const value = await carryOut(message.checkpoint, hangUp.signal);
        hangUps.delete(id);
        send(port, { kind: 'response', id, ...(value && { value }) });
      });
      port.on('close', () => {
        this.#others.delete(number);
        pending.settleAll();
      });
    }
  }

  /** The other workers continue without this one. */
  close(): void {
    for (const { port } of this.#others.values()) port.close();
  }
}

function send(port: MessagePort, message: Message): void {
  port.postMessage(message);
}
