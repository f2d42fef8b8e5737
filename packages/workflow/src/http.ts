/** Requests and answers of an endpoint as plain values, so that each framework converts them once, at its edge. */

/** A request to the endpoint. */
export interface Incoming {
  url: string;
  headers: Headers;
  /** The body; may reject when the connection breaks. */
  text(): Promise<string>;
  /** The variables of the request, on platforms that have them for each; used where the options give none. */
  env?: Record<string, string | undefined> | undefined;
}

export interface Reply {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Answers the requests to a URL. Never throws. */
export type Handler = (incoming: Incoming) => Promise<Reply>;

/** Answers a `Request` of the web with a `Response`. */
export async function answerWeb(handle: Handler, request: Request, env?: Incoming['env']): Promise<Response> {
  const { url, headers } = request;
  const { body, ...init } = await handle({ url, headers, text: () => request.text(), env });
  return new Response(body, init);
}

/** Header maps of Node and of JSON, with a list for each name or a single value, as a `Request` takes them. */
export function pairsOf(headers: Record<string, string | string[] | undefined>): [string, string][] {
  return Object.entries(headers).flatMap(([name, values]) =>
    [values ?? []].flat().map((value): [string, string] => [name, value]),
  );
}
