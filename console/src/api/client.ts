/** Calls the operations of the OpenAPI document by name, with their types. */
import {
  keepPreviousData,
  type UseMutationResult,
  type UseQueryResult,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { OPERATIONS, type Operations } from '../generated/interface.ts';
import { setToken, token } from './session.ts';

export type OperationId = keyof Operations;
export type ResponseOf<Id extends OperationId> = Operations[Id]['response'];

/** Members without content may be omitted. `headers` takes any name, since many are forwarded. */
export interface Input<Id extends OperationId> {
  path?: Operations[Id]['path'];
  query?: Operations[Id]['query'];
  headers?: Record<string, string>;
  /** Text and bytes are sent unchanged, any other value as JSON. */
  body?: Operations[Id]['body'] | Uint8Array<ArrayBuffer> | object | string;
}

/** An error response, with the message of the server. `status` is 0 if there was no response. */
export class RequestError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export async function call<Id extends OperationId>(
  id: Id,
  input: Input<Id> = {},
  signal?: AbortSignal,
): Promise<ResponseOf<Id>> {
  const response = await send(id, input, signal);
  const text = await response.text();
  return (text === '' ? undefined : JSON.parse(text)) as ResponseOf<Id>;
}

/** Returns the response, for streams. Throws `RequestError` if the status is not 2xx. */
export async function send<Id extends OperationId>(
  id: Id,
  { path = {}, query = {}, headers = {}, body }: Input<Id>,
  signal?: AbortSignal,
): Promise<Response> {
  const [method, template] = OPERATIONS[id];
  const isJson = body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array);
  const response = await fetch(targetOf(template, path, query), {
    method,
    headers: {
      Authorization: `Bearer ${token() ?? ''}`,
      ...(isJson && { 'Content-Type': 'application/json' }),
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, asHeaderBytes(value)])),
    },
    ...(body !== undefined && { body: isJson ? JSON.stringify(body) : (body as string | Uint8Array<ArrayBuffer>) }),
    ...(signal && { signal }),
  }).catch((error: unknown) => {
    throw signal?.aborted ? error : new RequestError(0, 'The server does not respond.');
  });
  if (response.ok) return response;
  if (response.status === 401) setToken(undefined);
  throw new RequestError(
    response.status,
    errorIn(await response.text()) ?? `The server responded with ${response.status}.`,
  );
}

/** `fetch` takes header values with one character for each byte. Text is sent as UTF-8, as curl does. */
function asHeaderBytes(text: string): string {
  return /^[\0-\x7f]*$/.test(text) ? text : String.fromCharCode(...new TextEncoder().encode(text));
}

function targetOf(template: string, path: object, query: object): string {
  const members = new Map<string, unknown>(Object.entries(path));
  // A destination is not encoded: the server reads it byte for byte.
  const target = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(members.get(name) ?? '');
    return name.startsWith('destination') && /^https?:/i.test(value) ? value : encodeURIComponent(value);
  });
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== '') parameters.append(name, String(one));
    }
  }
  return parameters.size === 0 ? target : `${target}?${parameters}`;
}

function errorIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { error?: string }).error;
  } catch {
    return undefined;
  }
}

/** How often a visible screen reloads its data. */
export const REFRESH_MS = 5_000;

interface Options<Data> {
  isEnabled?: boolean;
  /** With 0, there is no automatic reload. The interval may depend on the last response. */
  refreshMs?: number | ((data: Data) => number);
}

/** Reads data. The previous data stays visible while new data is loading. */
export function useCall<Id extends OperationId>(
  id: Id,
  input: Input<Id> = {},
  { isEnabled = true, refreshMs = REFRESH_MS }: Options<ResponseOf<Id>> = {},
): UseQueryResult<ResponseOf<Id>, RequestError> {
  return useQuery<ResponseOf<Id>, RequestError>({
    queryKey: [id, input],
    queryFn: ({ signal }) => call(id, input, signal),
    enabled: isEnabled,
    refetchInterval: ({ state: { data } }) => {
      if (typeof refreshMs === 'number') return refreshMs || false;
      return (data === undefined ? REFRESH_MS : refreshMs(data)) || false;
    },
    placeholderData: keepPreviousData as never,
  });
}

/** Changes data, and reloads everything that is visible afterwards. */
export function useChange<Id extends OperationId>(id: Id): UseMutationResult<ResponseOf<Id>, RequestError, Input<Id>> {
  const queries = useQueryClient();
  return useMutation<ResponseOf<Id>, RequestError, Input<Id>>({
    mutationFn: (input) => call(id, input),
    // Not awaited: the reload may remove the component that waits for this change.
    onSettled: () => void queries.invalidateQueries(),
  });
}
