/** Requests and responses of an endpoint as plain values, so that each framework converts them once. */

/** A request to the endpoint. */
export interface EndpointRequest {
  url: string;
  headers: Headers;
  /** The body. Rejects when the connection breaks. */
  text(): Promise<string>;
  /** Environment variables, on platforms that pass them with each request. The options take precedence. */
  env?: Record<string, string | undefined> | undefined;
}

export interface Reply {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Handles the requests to a URL. Never throws. */
export type Handler = (incoming: EndpointRequest) => Promise<Reply>;

/** Handles a web `Request` and returns a `Response`. */
export async function respondWeb(handle: Handler, request: Request, env?: EndpointRequest['env']): Promise<Response> {
  const { url, headers } = request;
  const { body, ...init } = await handle({ url, headers, text: () => request.text(), env });
  return new Response(body, init);
}

/** Converts the header maps of Node and of JSON, with one value or a list of values per name, for the `Headers` constructor. */
export function pairsOf(headers: Record<string, string | string[] | undefined>): [string, string][] {
  return Object.entries(headers).flatMap(([name, values]) =>
    [values ?? []].flat().map((value): [string, string] => [name, value]),
  );
}
