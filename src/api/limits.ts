/** Bounds of the HTTP interface. `config` names each as a setting and explains its default. */
export interface ApiLimits {
  /** Body of one message; the setting that a 413 names. */
  messageBytesMax: number;
  /** Body of one batch request. */
  batchBytesMax: number;
  batchItemsMax: number;
  /** Bodies held in memory over all requests; a request beyond this is answered 503. */
  requestMemoryBytesMax: number;
  /** Names and values of all request headers together (contract M 20.2). */
  headerBytesMax: number;
  connectionsMax: number;
  /** From the first byte of a request to the end of its headers. */
  headersTimeoutMs: number;
  /** From the first byte of a request to the end of its body. */
  requestTimeoutMs: number;
  /** An idle connection is closed after this time. */
  keepAliveTimeoutMs: number;
  /** Requests of a project in one second, publishing excepted; 0: any number (contract M 20.3). */
  requestsPerSecondMax: number;
  /** URL groups of a project; 0: unlimited (contract M 20.1, as the next). */
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

/** The request line is accepted up to this size, since clients put long id lists into the query. */
export const TARGET_BYTES_MAX = 64 * 1024;

/** More header lines than this are refused: Node would drop the rest without a word. */
export const HEADER_LINES_MAX = 1_000;

/** A connection is closed after this many requests, so that a balancer spreads long-lived callers anew. */
export const REQUESTS_PER_SOCKET_MAX = 10_000;

/** JSON bodies of filters and of other small requests. */
const SMALL_JSON_BYTES_MAX = 256 * 1024;

/** Values in such a body: each costs time, and no request needs more. */
const SMALL_JSON_VALUES_MAX = 10_000;

/** Flow-control keys in one answer: a project may have any number of them (P10). */
export const FLOW_KEYS_PAGE_MAX = 1000;

/** Ids that one request may name (`messageIds`, `dlqIds`). */
export const IDS_MAX = 1000;

/** Endpoints that one request may add to a URL group or remove from it: each is searched for in the whole group. */
export const ENDPOINTS_PER_REQUEST_MAX = 1000;

/** Messages that one request may make once its URL groups are resolved, unless `batchItemsMax` is more. */
export const MESSAGES_PER_REQUEST_MAX = 10_000;

/** Different values of one filter: each costs time on every row that is looked at. */
export const FILTER_VALUES_MAX = 100;

/**
 * Bytes of bodies in an answer about given DLQ ids, which has no cursor, and of a page of the log. The store limits the
 * pages of other lists itself (P10).
 */
export const PAGE_BODY_BYTES_MAX = 16 * 1024 * 1024;

/** The longest page as JSON: base64 of `PAGE_BODY_BYTES_MAX`, or of half of it twice. */
export const LONG_RESPONSE_BYTES = 24 * 1024 * 1024;

/** Bytes of long answers at a time. While one is made, what was read for it is in memory beside it. */
export const LONG_RESPONSES_BYTES_MAX = 256 * 1024 * 1024;

/** JSON values that one message may hold: its members, its headers and the values of lists in them. */
export const VALUES_PER_ITEM_MAX = 1_000;

/** JSON values that a batch may hold for each message that it may have; `least` is the lower bound of the total. */
export const BATCH_VALUES = { perItem: 250, least: 2_500 };

/** Headers that the items of a batch may have on average: one item alone may have as many as a publish. */
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
