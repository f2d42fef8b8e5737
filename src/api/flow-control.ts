/** Flow-control keys: where they stand, and what an operator can do with them (contract M 16, 22.30 to 22.36). */
import { Type } from '@sinclair/typebox';
import type { FlowKey, FlowPin } from '../engine/lanes.ts';
import { ApiError } from '../protocol/errors.ts';
import { PERIOD_MAX_S } from '../protocol/flow-control.ts';
import { checkName, isName } from '../protocol/names.ts';
import { type Answer, answer, NO_BODY } from './answer.ts';
import { FLOW_KEYS_PAGE_MAX } from './limits.ts';
import { countOf, invalidParameter, type Parameters, readQuery, textOf } from './parameters.ts';
import type { Call, Route, Services } from './route.ts';
import { FlowKeyListSchema, FlowKeySchema, GlobalParallelismSchema } from './schemas.ts';
import type { QueryParameter } from './takes.ts';

const AtLeastOne = Type.Integer({ minimum: 1 });

const LIST_QUERY = [
  { name: 'search', meaning: 'Part of the name of the keys, in the same letter case.', schema: Type.String() },
  {
    name: 'count',
    meaning: `How many at most. More than ${FLOW_KEYS_PAGE_MAX} is lowered to it.`,
    schema: Type.Integer({ minimum: 1, default: FLOW_KEYS_PAGE_MAX }),
  },
  { name: 'cursor', meaning: 'Where the page before ended; take it from its answer.', schema: Type.String() },
] as const satisfies QueryParameter[];

const PIN_QUERY = [
  { name: 'parallelism', meaning: 'Attempts in flight; this, rate or both are needed.', schema: AtLeastOne },
  { name: 'rate', meaning: 'Attempts started in a period.', schema: AtLeastOne },
  {
    name: 'period',
    meaning: 'Seconds, only with a rate; the key keeps its period without it.',
    schema: Type.Integer({ minimum: 1, maximum: PERIOD_MAX_S }),
  },
] as const satisfies QueryParameter[];

const UNPIN_QUERY = [
  { name: 'parallelism', meaning: 'Whether messages may set the parallelism again.', schema: Type.Boolean() },
  { name: 'rate', meaning: 'Whether messages may set the rate and its period again.', schema: Type.Boolean() },
] as const satisfies QueryParameter[];

export function flowControlRoutes({ engine: { storeOf }, limits }: Services): Route[] {
  async function list({ projectId, rawQuery }: Call): Promise<Answer> {
    const query = readQuery(rawQuery, LIST_QUERY);
    const search = textOf(query, 'search') ?? '';
    const count = Math.min(countOf(query, 'count') ?? FLOW_KEYS_PAGE_MAX, FLOW_KEYS_PAGE_MAX);
    const cursor = textOf(query, 'cursor');
    const after = cursor === undefined ? '' : keyOfCursor(cursor);
    // One more than is shown tells whether there are more.
    const found = await storeOf(projectId).keys.listKeys({ search, after, count: count + 1 });
    const shown = found.slice(0, count);
    const last = shown.at(-1);
    return answer(200, {
      flowControls: shown.map(flowKeyView),
      cursor: last && found.length > count ? cursorAfter(last.key) : undefined,
    });
  }

  async function get({ projectId, id: key }: Call): Promise<Answer> {
    checkKey(key);
    const found = await storeOf(projectId).keys.findKey({ key });
    if (!found) throw new ApiError('not_found', `flow control key ${key} not found`);
    return answer(200, flowKeyView(found));
  }

  async function setPaused({ projectId, id: key }: Call, isPaused: boolean): Promise<Answer> {
    checkKey(key);
    await storeOf(projectId).keys.setKeyPaused({ key, isPaused });
    return NO_BODY;
  }

  async function pin({ projectId, id: key, rawQuery }: Call): Promise<Answer> {
    checkKey(key);
    await storeOf(projectId).keys.pinKey({ key, pin: pinOf(readQuery(rawQuery, PIN_QUERY)) });
    return NO_BODY;
  }

  async function unpin({ projectId, id: key, rawQuery }: Call): Promise<Answer> {
    checkKey(key);
    const query = readQuery(rawQuery, UNPIN_QUERY);
    const parts = { parallelism: flagOf(query, 'parallelism'), rate: flagOf(query, 'rate') };
    if (parts.parallelism || parts.rate) await storeOf(projectId).keys.unpinKey({ key, ...parts });
    return NO_BODY;
  }

  async function resetRate({ projectId, id: key }: Call): Promise<Answer> {
    checkKey(key);
    await storeOf(projectId).keys.resetKeyRate({ key });
    return NO_BODY;
  }

  async function globalParallelism({ projectId }: Call): Promise<Answer> {
    const parallelismCount = await storeOf(projectId).keys.countInFlight();
    return answer(200, { parallelismMax: limits.parallelismMax, parallelismCount });
  }

  const keyPath = '/v2/flowControl/:flowControlKey';
  const action = { method: 'POST', access: 'full', answers: { 200: undefined }, refusals: [400] } as const;
  return [
    {
      method: 'GET',
      path: '/v2/flowControl',
      operationId: 'listFlowControlKeys',
      access: 'read',
      summary: 'Lists flow-control keys by name.',
      takes: { query: LIST_QUERY },
      answers: { 200: FlowKeyListSchema },
      handle: list,
    },
    {
      method: 'GET',
      path: keyPath,
      operationId: 'getFlowControlKey',
      access: 'read',
      summary: 'Reads one flow-control key.',
      refusals: [400],
      answers: { 200: FlowKeySchema },
      handle: get,
    },
    {
      ...action,
      path: `${keyPath}/pause`,
      operationId: 'pauseFlowControlKey',
      summary: 'Pauses a flow-control key, also one that nobody used yet: none of its messages starts.',
      handle: (call) => setPaused(call, true),
    },
    {
      ...action,
      path: `${keyPath}/resume`,
      operationId: 'resumeFlowControlKey',
      summary: 'Lets the messages of a paused flow-control key start again.',
      handle: (call) => setPaused(call, false),
    },
    {
      ...action,
      path: `${keyPath}/pin`,
      operationId: 'pinFlowControlKey',
      summary: 'Fixes limits of a flow-control key, so that messages no longer set them.',
      takes: { query: PIN_QUERY },
      handle: pin,
    },
    {
      ...action,
      path: `${keyPath}/unpin`,
      operationId: 'unpinFlowControlKey',
      summary: 'Lets messages set limits of a flow-control key again.',
      takes: { query: UNPIN_QUERY },
      handle: unpin,
    },
    {
      ...action,
      path: `${keyPath}/resetRate`,
      operationId: 'resetFlowControlKeyRate',
      summary: 'Begins a new period of a flow-control key, in which nothing was started yet.',
      handle: resetRate,
    },
    {
      ...action,
      path: `${keyPath}/reset`,
      operationId: 'resetFlowControlKey',
      // Attempts in flight are counted anew whenever anybody asks, so there is nothing else to reset.
      summary: 'The same as resetRate.',
      handle: resetRate,
    },
    {
      method: 'GET',
      path: '/v2/globalParallelism',
      operationId: 'getGlobalParallelism',
      access: 'read',
      summary: 'Says how many attempts are in flight, and how many may be.',
      answers: { 200: GlobalParallelismSchema },
      handle: globalParallelism,
    },
  ];
}

/** All eleven members are always there; 0 where there is no limit or was no period. */
function flowKeyView({ key, waitListSize, parallelism, inFlight, rate, periodS, rateCount, ...standing }: FlowKey) {
  const { periodStartedAtMs = 0, isPaused, isParallelismPinned, isRatePinned } = standing;
  return {
    flowControlKey: key,
    waitListSize,
    parallelismMax: parallelism ?? 0,
    parallelismCount: inFlight,
    rateMax: rate ?? 0,
    rateCount,
    ratePeriod: rate === undefined ? 0 : periodS,
    // Alone among the times of the interface this one is in seconds (contract M 3.1).
    ratePeriodStart: Math.floor(periodStartedAtMs / 1000),
    isPaused,
    isPinnedParallelism: isParallelismPinned,
    isPinnedRate: isRatePinned,
  };
}

function checkKey(key: string): void {
  checkName('flow control key', key);
}

/** Opaque to callers; what it names need not exist any more. */
function cursorAfter(key: string): string {
  return Buffer.from(key).toString('base64url');
}

function keyOfCursor(cursor: string): string {
  const key = Buffer.from(cursor, 'base64url').toString();
  if (!isName(key) || cursorAfter(key) !== cursor) throw invalidParameter('cursor', 'take it from the answer before');
  return key;
}

/** Throws `ApiError` 400 when there is nothing to pin, or a value is out of its range. */
function pinOf(query: Parameters): FlowPin {
  const parallelism = countOf(query, 'parallelism');
  const rate = countOf(query, 'rate');
  const periodS = countOf(query, 'period', PERIOD_MAX_S);
  if (parallelism === undefined && rate === undefined) {
    throw invalidParameter('parallelism', 'this, rate or both are needed');
  }
  if (periodS !== undefined && rate === undefined) throw invalidParameter('period', 'it needs a rate');
  return {
    ...(parallelism === undefined ? undefined : { parallelism }),
    ...(rate === undefined ? undefined : { rate }),
    ...(periodS === undefined ? undefined : { periodS }),
  };
}

/** In any letter case, since one of the official clients writes `True` (contract M 23). */
function flagOf(query: Parameters, name: string): boolean {
  const text = (textOf(query, name) ?? 'false').toLowerCase();
  if (text === 'true' || text === 'false') return text === 'true';
  throw invalidParameter(name, 'true or false is needed');
}
