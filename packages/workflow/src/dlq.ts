/** Lists, resumes, restarts and deletes failed runs in the DLQ. */
import { type DlqSelection, pathOf, queryOf, type RunFilter } from './filters.ts';
import { flowValueOf } from './headers.ts';
import type { DLQMessage } from './logs.ts';
import type { Server } from './server.ts';
import type { FlowControl } from './types.ts';

export interface ResumeRestartOptions {
  flowControl?: FlowControl;
  retries?: number;
}

export interface DLQResumeRestartResponse {
  workflowRunId: string;
  workflowCreatedAt: string;
}

export interface DLQResumeRestartOptions<TDLQId extends string | string[] = string | string[]>
  extends ResumeRestartOptions {
  dlqId: TDLQId;
}

interface StartedRuns {
  cursor?: string;
  workflowRuns: DLQResumeRestartResponse[];
}

type Selection = string | string[] | DlqSelection;

export class DLQ {
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  async list({
    cursor,
    count,
    filter,
  }: {
    cursor?: string;
    count?: number;
    filter?: RunFilter & { url?: string; responseStatus?: number };
  } = {}): Promise<{ messages: DLQMessage[]; cursor?: string }> {
    const path = pathOf('/v2/dlq', { cursor, count, ...filter, source: 'workflow' });
    return lastPage(await this.#server.json<{ messages: DLQMessage[]; cursor?: string }>({ method: 'GET', path }));
  }

  /** Starts new runs that continue from where the failed runs stopped. */
  resume(request: Selection, options?: ResumeRestartOptions): Promise<StartedRuns>;
  resume(request: DLQResumeRestartOptions<string>): Promise<DLQResumeRestartResponse>;
  resume(request: DLQResumeRestartOptions<string[]>): Promise<DLQResumeRestartResponse[]>;
  resume(
    request: Selection | DLQResumeRestartOptions,
    options?: ResumeRestartOptions,
  ): Promise<StartedRuns | DLQResumeRestartResponse | DLQResumeRestartResponse[]> {
    return this.#start('resume', request, options);
  }

  /** Starts new runs from the beginning, with the payloads of the failed runs. */
  restart(request: Selection, options?: ResumeRestartOptions): Promise<StartedRuns>;
  restart(request: DLQResumeRestartOptions<string>): Promise<DLQResumeRestartResponse>;
  restart(request: DLQResumeRestartOptions<string[]>): Promise<DLQResumeRestartResponse[]>;
  restart(
    request: Selection | DLQResumeRestartOptions,
    options?: ResumeRestartOptions,
  ): Promise<StartedRuns | DLQResumeRestartResponse | DLQResumeRestartResponse[]> {
    return this.#start('restart', request, options);
  }

  /** Calls the failure function of a failed run again. */
  retryFailureFunction({ dlqId }: { dlqId: string }): Promise<DLQResumeRestartResponse & { error?: string }> {
    return this.#server.json({ method: 'POST', path: `/v2/workflows/dlq/callback/${encodeURIComponent(dlqId)}` });
  }

  async delete(request: Selection): Promise<{ cursor?: string; deleted: number } & { error?: string }> {
    const selection = selectionOf(request);
    if (!selection) return { deleted: 0 };
    const path = pathOf('/v2/workflows/dlq', queryOf(selection));
    return lastPage(await this.#server.json<{ cursor?: string; deleted: number }>({ method: 'DELETE', path }));
  }

  async #start(
    how: 'resume' | 'restart',
    request: Selection | DLQResumeRestartOptions,
    options: ResumeRestartOptions = {},
  ): Promise<StartedRuns | DLQResumeRestartResponse | DLQResumeRestartResponse[]> {
    if (typeof request === 'object' && 'dlqId' in request) {
      const { dlqId, ...rest } = request;
      const { workflowRuns } = (await this.#start(how, [dlqId].flat(), rest)) as StartedRuns;
      return Array.isArray(dlqId) ? workflowRuns : (workflowRuns[0] as DLQResumeRestartResponse);
    }
    const selection = selectionOf(request);
    if (!selection) return { workflowRuns: [] };
    const { flowControl, retries } = options;
    const headers = {
      ...(flowControl && {
        'Upstash-Flow-Control-Key': flowControl.key,
        'Upstash-Flow-Control-Value': flowValueOf(flowControl),
      }),
      ...(retries !== undefined && { 'Upstash-Retries': String(retries) }),
    };
    const path = pathOf(`/v2/workflows/dlq/${how}`, queryOf(selection));
    return lastPage(await this.#server.json<StartedRuns>({ method: 'POST', path, headers }));
  }
}

/** Returns undefined for an empty list of ids, which selects nothing. */
function selectionOf(request: Selection): DlqSelection | undefined {
  if (typeof request === 'string') return { dlqIds: [request] };
  if (Array.isArray(request)) return request.length === 0 ? undefined : { dlqIds: request };
  return request;
}

/** Removes an empty cursor, which the server may send with the last page. */
function lastPage<T extends { cursor?: string }>(page: T): T {
  if (page.cursor) return page;
  const { cursor: _, ...rest } = page;
  return rest as T;
}
