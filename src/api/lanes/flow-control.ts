/** Lists, reads, pauses, pins and resets flow-control keys (contract M 16, 22.30 to 22.36). */
import { Type } from '@sinclair/typebox';
import type { FlowKey, FlowPin } from '../../engine/lanes/lanes.ts';
import { ApiError } from '../../protocol/errors.ts';
import { checkName, checkNewName, isName } from '../../protocol/names.ts';
import { PERIOD_MAX_S } from '../../protocol/options/flow-control.ts';
import { FLOW_KEYS_PAGE_MAX } from '../limits.ts';
import { cutToPage } from '../messages/filters.ts';
import {
  amount,
  CURSOR,
  flagInAnyCase,
  into,
  invalidParameter,
  pageCount,
  readQuery,
  text,
} from '../requests/parameters.ts';
import { type ApiResponse, jsonResponse, NO_BODY } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import { Count, exactly, GlobalParallelismSchema, Limit, shapeOf, Text } from '../schemas.ts';

const LIST_QUERY = [
  text('search', 'Part of the name of the keys, in the same letter case.'),
  pageCount(FLOW_KEYS_PAGE_MAX),
  CURSOR,
];

const PIN_QUERY = [
  amount('parallelism', 'Maximum attempts in flight; parallelism, rate or both are needed.'),
  amount('rate', 'Maximum attempts started in a period.'),
  into('periodS', amount('period', 'Period of the rate in seconds; unchanged by default.', { max: PERIOD_MAX_S })),
];

const UNPIN_QUERY = [
  flagInAnyCase('parallelism', 'Whether messages may set the parallelism again.'),
  flagInAnyCase('rate', 'Whether messages may set the rate and its period again.'),
];

/** All eleven members are always present; 0 means that there is no limit, or that no period has started. */
export const FLOW_KEY = shapeOf<[FlowKey]>()(
  {
    flowControlKey: [Text, ({ key }) => key],
    waitListSize: [Count, ({ waitListSize }) => waitListSize],
    parallelismMax: [Limit, ({ parallelism }) => parallelism ?? 0],
    parallelismCount: [Count, ({ inFlight }) => inFlight],
    rateMax: [Limit, ({ rate }) => rate ?? 0],
    rateCount: [Count, ({ rateCount }) => rateCount],
    ratePeriod: [
      Type.Integer({ minimum: 0, description: 'seconds; 0 without a rate' }),
      ({ rate, periodS }) => (rate === undefined ? 0 : periodS),
    ],
    // A time in seconds, unlike other times (contract M 3.1).
    ratePeriodStart: [
      Type.Integer({ minimum: 0, description: 'Unix time in seconds; 0 before the first period' }),
      ({ periodStartedAtMs = 0 }) => Math.floor(periodStartedAtMs / 1000),
    ],
    isPaused: [Type.Boolean(), ({ isPaused }) => isPaused],
    isPinnedParallelism: [Type.Boolean(), ({ isParallelismPinned }) => isParallelismPinned],
    isPinnedRate: [Type.Boolean(), ({ isRatePinned }) => isRatePinned],
  },
  'FlowControlKey',
);
const FlowKeyListSchema = exactly({ flowControls: Type.Array(FLOW_KEY.schema), cursor: Type.Optional(Text) });

export function flowControlRoutes({ engine: { storeOf }, limits }: Services): Route[] {
  async function list({ projectId, rawQuery }: Call): Promise<ApiResponse> {
    const { search = '', count = FLOW_KEYS_PAGE_MAX, cursor } = readQuery(rawQuery, LIST_QUERY);
    const after = cursor === undefined ? '' : keyOfCursor(cursor);
    const keys = await storeOf(projectId).keys.listKeys({ search, after, count: count + 1 });
    const { items, cursor: next } = cutToPage(keys, count, ({ key }) => cursorAfter(key));
    return jsonResponse(200, { flowControls: items.map(FLOW_KEY.view), cursor: next });
  }

  async function get({ projectId, id: key }: Call): Promise<ApiResponse> {
    checkKey(key);
    const flowKey = await storeOf(projectId).keys.findKey({ key });
    if (!flowKey) throw new ApiError('not_found', `flow control key ${key} not found`);
    return jsonResponse(200, FLOW_KEY.view(flowKey));
  }

  async function setPaused({ projectId, id: key }: Call, isPaused: boolean): Promise<ApiResponse> {
    // A pause creates the key if it does not exist.
    if (isPaused) checkNewKey(key);
    else checkKey(key);
    await storeOf(projectId).keys.setKeyPaused({ key, isPaused });
    return NO_BODY;
  }

  async function pin({ projectId, id: key, rawQuery }: Call): Promise<ApiResponse> {
    checkNewKey(key);
    await storeOf(projectId).keys.pinKey({ key, pin: pinOf(readQuery(rawQuery, PIN_QUERY)) });
    return NO_BODY;
  }

  async function unpin({ projectId, id: key, rawQuery }: Call): Promise<ApiResponse> {
    checkKey(key);
    const pins = { parallelism: false, rate: false, ...readQuery(rawQuery, UNPIN_QUERY) };
    if (pins.parallelism || pins.rate) await storeOf(projectId).keys.unpinKey({ key, ...pins });
    return NO_BODY;
  }

  async function resetRate({ projectId, id: key }: Call): Promise<ApiResponse> {
    checkKey(key);
    await storeOf(projectId).keys.resetKeyRate({ key });
    return NO_BODY;
  }

  async function globalParallelism({ projectId }: Call): Promise<ApiResponse> {
    const parallelismCount = await storeOf(projectId).keys.countInFlight();
    return jsonResponse(200, { parallelismMax: limits.parallelismMax, parallelismCount });
  }

  const keyPath = '/v2/flowControl/:flowControlKey';
  const invalidName = { refusals: [400] };
  return [
    {
      ...row('read', 'GET', '/v2/flowControl', 'listFlowControlKeys'),
      summary: 'Lists flow-control keys by name.',
      takes: { query: LIST_QUERY },
      responses: { 200: FlowKeyListSchema },
      handle: list,
    },
    {
      ...row('read', 'GET', keyPath, 'getFlowControlKey'),
      summary: 'Reads one flow-control key.',
      ...invalidName,
      responses: { 200: FLOW_KEY.schema },
      handle: get,
    },
    {
      ...row('full', 'POST', `${keyPath}/pause`, 'pauseFlowControlKey'),
      ...invalidName,
      summary: 'Pauses a flow-control key, even one that is not in use yet: none of its messages starts.',
      handle: (call) => setPaused(call, true),
    },
    {
      ...row('full', 'POST', `${keyPath}/resume`, 'resumeFlowControlKey'),
      ...invalidName,
      summary: 'Resumes a paused flow-control key.',
      handle: (call) => setPaused(call, false),
    },
    {
      ...row('full', 'POST', `${keyPath}/pin`, 'pinFlowControlKey'),
      ...invalidName,
      summary: 'Pins limits of a flow-control key: messages no longer change them.',
      takes: { query: PIN_QUERY },
      handle: pin,
    },
    {
      ...row('full', 'POST', `${keyPath}/unpin`, 'unpinFlowControlKey'),
      ...invalidName,
      summary: 'Unpins limits of a flow-control key: messages set them again.',
      takes: { query: UNPIN_QUERY },
      handle: unpin,
    },
    {
      ...row('full', 'POST', `${keyPath}/resetRate`, 'resetFlowControlKeyRate'),
      ...invalidName,
      summary: 'Starts a new rate period of a flow-control key, with a count of 0.',
      handle: resetRate,
    },
    {
      ...row('full', 'POST', `${keyPath}/reset`, 'resetFlowControlKey'),
      ...invalidName,
      // Attempts in flight are counted anew whenever their number is needed, so there is no other counter to reset.
      summary: 'The same as resetRate.',
      handle: resetRate,
    },
    {
      ...row('read', 'GET', '/v2/globalParallelism', 'getGlobalParallelism'),
      summary: 'Reads the number of attempts in flight, and its limit.',
      responses: { 200: GlobalParallelismSchema },
      handle: globalParallelism,
    },
  ];
}

function checkKey(key: string): void {
  checkName('flow control key', key);
}

function checkNewKey(key: string): void {
  checkNewName('flow control key', key);
}

/** Opaque to clients. The key may be deleted before the cursor is used. */
function cursorAfter(key: string): string {
  return Buffer.from(key).toString('base64url');
}

function keyOfCursor(cursor: string): string {
  const key = Buffer.from(cursor, 'base64url').toString();
  if (!isName(key) || cursorAfter(key) !== cursor)
    throw invalidParameter('cursor', 'take it from the previous response');
  return key;
}

/** Throws `ApiError` 400 if the pin sets neither parallelism nor rate, or sets a period without a rate. */
function pinOf(pin: FlowPin): FlowPin {
  const { parallelism, rate, periodS } = pin;
  if (parallelism === undefined && rate === undefined) {
    throw invalidParameter('parallelism', 'this, rate or both are needed');
  }
  if (periodS !== undefined && rate === undefined) throw invalidParameter('period', 'it needs a rate');
  return pin;
}
