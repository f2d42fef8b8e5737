/** Limits of the HTTP interface. Most are settings, which `config` names and explains. */
export interface ApiLimits {
  /** Body of one message. */
  messageBytesMax: number;
  /** Body of one batch request. */
  batchBytesMax: number;
  batchItemsMax: number;
  /** Memory of the bodies of all requests; a request that exceeds it gets a 503. */
  requestMemoryBytesMax: number;
  /** Names and values of all request headers together (contract M 20.2). */
  headerBytesMax: number;
  connectionsMax: number;
  /** Maximum time from the first byte of a request to the end of its headers. */
  headersTimeoutMs: number;
  /** Maximum time from the first byte of a request to the end of its body. */
  requestTimeoutMs: number;
  /** An idle connection is closed after this time. */
  keepAliveTimeoutMs: number;
  /** Maximum requests of a project per second, publishes excepted; 0: unlimited (contract M 20.3). */
  requestsPerSecondMax: number;
  /** URL groups of a project; 0: unlimited (contract M 20.1). */
  urlGroupsMax: number;
  /** Queues of a project; 0: unlimited. */
  queuesMax: number;
  /** Parallelism of one queue; 0: unlimited. */
  queueParallelismMax: number;
  /** Maximum attempts in flight per project, enforced by the store; 0: unlimited. */
  parallelismMax: number;
  /** Maximum endpoints of one URL group; 0: unlimited. */
  urlGroupEndpointsMax: number;
  /** Maximum schedules of a project; 0: unlimited. */
  schedulesMax: number;
}

/** Maximum length of the request line. Clients put long id lists into the query. */
export const TARGET_BYTES_MAX = 64 * 1024;

/** More header lines than this are rejected: Node would silently drop the rest. */
export const HEADER_LINES_MAX = 1_000;

/** A connection is closed after this many requests, so that a balancer redistributes long-lived clients. */
export const REQUESTS_PER_SOCKET_MAX = 10_000;

/** Length of JSON bodies of filters and of other small requests. */
const SMALL_JSON_BYTES_MAX = 256 * 1024;

/** JSON values in the body of a small request. Each value costs time, and no request needs more. */
const SMALL_JSON_VALUES_MAX = 10_000;

/** Flow-control keys in one response. A project may have any number of keys (P10). */
export const FLOW_KEYS_PAGE_MAX = 1000;

/** Ids that one request may name (`messageIds`, `dlqIds`). */
export const IDS_MAX = 1000;

/** Endpoints that one request may add to or remove from a URL group. Each endpoint is searched for in the whole group. */
export const ENDPOINTS_PER_REQUEST_MAX = 1000;

/** Messages that one request may create, with one for each endpoint of a URL group. A larger `batchItemsMax` applies. */
export const MESSAGES_PER_REQUEST_MAX = 10_000;

/** Distinct values of one filter. Each value costs time for every row that is read. */
export const FILTER_VALUES_MAX = 100;

/**
 * Maximum bytes of message bodies in a page of the log, and in a list of given DLQ ids, which is never divided into
 * pages. The store limits the pages of other lists (P10).
 */
export const PAGE_BODY_BYTES_MAX = 16 * 1024 * 1024;

/** Length of the longest page as JSON: bodies of `PAGE_BODY_BYTES_MAX` in base64, or of half as many bytes sent twice. */
export const LONG_RESPONSE_BYTES = 24 * 1024 * 1024;

/** Memory of all long responses at a time. While a response is built, its rows from the store are in memory too. */
export const LONG_RESPONSES_BYTES_MAX = 256 * 1024 * 1024;

/** JSON values of one message: its members, its headers, and each value of a list. */
export const VALUES_PER_ITEM_MAX = 1_000;

/** Limits the JSON values of a batch: `perItem` for each message that a batch may have, but at least `least` in total. */
export const BATCH_VALUES = { perItem: 250, least: 2_500 };

/** Limits of the headers of a batch, on average per item. A single item may have as many headers as a publish. */
export const BATCH_HEADERS_PER_ITEM = { bytes: 4 * 1024, lines: 100 };

/** The limit of one message's body, wherever the message comes from. */
export function messageLimit(bytesMax: number) {
  return { bytesMax, setting: 'message_bytes_max', quota: 'maxMessageSize' };
}

/** The limit of every JSON body except a batch. */
export const SMALL_JSON_LIMIT = {
  bytesMax: SMALL_JSON_BYTES_MAX,
  setting: 'the limit of this endpoint',
  valuesMax: SMALL_JSON_VALUES_MAX,
} as const;
