/** Validates a checkpoint (contract K 3.2, 3.3). An error names the element of `append` or `failed`, counted from 0. */
import type { AppendedEntry, FailedMessage } from '../../engine/calls/commands.ts';
import { Slices } from '../../engine/loops/slices.ts';
import type { PublishCommand } from '../../engine/messages/publish-command.ts';
import { ApiError, quotaExceeded } from '../../protocol/errors.ts';
import { headerMapFromRaw, quoted } from '../../protocol/headers.ts';
import { objectOf } from '../../protocol/json-objects.ts';
import { checkNewName } from '../../protocol/names.ts';
import { checkDelay, itemRawHeaders, readPublishOptions } from '../../protocol/options/options.ts';
import { isDateMs, parseDurationMs } from '../../protocol/times/durations.ts';
import { toRunError } from '../../protocol/workflow/run-errors.ts';
import { identityOfStep, readStep } from '../../workflow/steps.ts';
import { HEADER_LINES_MAX, messageLimit } from '../limits.ts';
import { bodyTooLarge } from '../requests/request-body.ts';
import { readItem } from '../requests/request-items.ts';
import type { Services } from '../route.ts';
import { completeRunPublish } from './run-publish.ts';
import { stepMember, timeoutMember, timeoutMsOf } from './wait-request.ts';

/** The longest idle time of a call. An idle call occupies a slot, and proxies close longer idle connections. */
const LINGER_MS_MAX = 10_000;

type ReadServices = Pick<Services, 'quotas' | 'limits' | 'proxyHeaders' | 'json' | 'clock' | 'endOfTurn'>;

export interface CheckpointRequest {
  done: string[];
  failed: { token: string; outcome: FailedMessage['outcome'] }[];
  append: AppendedEntry[];
  lingerMs?: number;
}

/** `parse` returns the `value` of `parseCheckpoint`. Rejects with `ApiError` 412, 413 or 422. */
export async function readCheckpoint(parse: () => unknown, services: ReadServices): Promise<CheckpointRequest> {
  try {
    const members = objectOf(await parse(), 'a JSON object is needed');
    // A parallel group starts with one checkpoint, as large as the batch that other libraries publish for such a group.
    const { batchItemsMax: elementsMax } = services.limits;
    const failed = failedElements(members['failed'], elementsMax).map((element, at) =>
      readFailed(element, at, services),
    );
    const done = readDone(members['done'], elementsMax, failed.length > 0);
    const append: AppendedEntry[] = [];
    const slices = new Slices(services.clock, services.endOfTurn);
    for (const [at, element] of appendElements(members['append'], elementsMax).entries()) {
      append.push(
        await readElement(element, services).catch((error: unknown) => Promise.reject(withElement(at, error))),
      );
      if (slices.isOver) await slices.next();
    }
    if (done.length === 0 && append.length > 0) throw invalid('with append, done must have at least one token');
    const tokens = [...done, ...failed.map(({ token }) => token)];
    if (new Set(tokens).size < tokens.length) throw invalid('done and failed must have each token once');
    const lingerMs = readLingerMs(members['lingerMs']);
    return { done, failed, append, ...(lingerMs !== undefined && { lingerMs }) };
  } catch (error) {
    throw toRunError(error);
  }
}

function readDone(value: unknown, elementsMax: number, mayBeEmpty: boolean): string[] {
  if (mayBeEmpty && (value === undefined || value === null)) return [];
  const isList = Array.isArray(value) && value.length <= elementsMax && (mayBeEmpty || value.length > 0);
  if (isList && value.every((token) => typeof token === 'string')) return value;
  throw invalid(`done must have 1 to ${elementsMax} tokens`);
}

function readFailed(element: unknown, at: number, { limits }: ReadServices): CheckpointRequest['failed'][number] {
  const invalidElement = (reason: string) => invalid(`${reason} (failed[${at}])`);
  const { token, status, headers, body = '' } = objectOf(element, `an object is needed (failed[${at}])`);
  if (typeof token !== 'string') throw invalidElement('token must be a string');
  if (!Number.isInteger(status) || Number(status) < 300 || Number(status) > 599) {
    throw invalidElement('status must be a whole number from 300 to 599');
  }
  if (typeof body !== 'string') throw invalidElement('body must be a string');
  const bytes = Buffer.from(body);
  const limit = messageLimit(limits.messageBytesMax);
  if (bytes.length > limit.bytesMax) throw bodyTooLarge(limit);
  const header = headerMapFromRaw(itemRawHeaders(headers));
  return { token, outcome: { kind: 'responded', status: Number(status), header, body: bytes } };
}

function readLingerMs(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (Number.isInteger(value) && Number(value) >= 0 && Number(value) <= LINGER_MS_MAX) return Number(value);
  throw invalid(`lingerMs must be a whole number from 0 to ${LINGER_MS_MAX}`);
}

function failedElements(value: unknown, elementsMax: number): unknown[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.length <= elementsMax) return value;
  throw invalid(`failed must be an array of at most ${elementsMax} elements`);
}

function appendElements(value: unknown, elementsMax: number): unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalid('append must be an array');
  if (value.length > elementsMax) throw quotaExceeded('maxAppend', elementsMax);
  return value;
}

async function readElement(element: unknown, services: ReadServices): Promise<AppendedEntry> {
  const members = objectOf(element, 'an object is needed');
  const kinds = ['step', 'call', 'invoke', 'wait'].filter((kind) => Object.hasOwn(members, kind));
  if (kinds.length !== 1) throw invalid('one of step, call, invoke and wait is needed');
  switch (kinds[0]) {
    case 'step':
      return readStepElement(members, services);
    case 'wait':
      return readWaitElement(members['wait'], services);
    case 'call':
      return readCallElement(members['call'], services);
    default:
      return await readInvokeElement(members['invoke'], services);
  }
}

function readStepElement(members: Record<string, unknown>, { quotas, clock, limits }: ReadServices): AppendedEntry {
  const body = members['step'];
  if (!(body instanceof Uint8Array)) throw invalid('step must be an object');
  const limit = messageLimit(limits.messageBytesMax);
  if (body.length > limit.bytesMax) throw bodyTooLarge(limit);
  const read = readStep(body);
  const identity = read && identityOfStep(read);
  if (!identity) throw invalid('step must have a stepId of at least 1, or stepId 0 and a targetStep');
  const { delay, notBefore } = members;
  const nowMs = clock.nowMs();
  const appended: AppendedEntry = { kind: 'step', body, identity };
  let aheadMs = 0;
  if (notBefore !== undefined && notBefore !== null) {
    if (!Number.isSafeInteger(notBefore) || Number(notBefore) < 0) throw invalid('notBefore must be Unix seconds');
    appended.notBeforeMs = Math.max(Number(notBefore) * 1000, read.sleepUntilMs ?? 0);
    aheadMs = appended.notBeforeMs - nowMs;
  } else if (delay !== undefined && delay !== null) {
    const delayMs = parseDurationMs(typeof delay === 'number' ? `${delay}s` : String(delay));
    if (delayMs === undefined) throw invalid(`delay must be a duration such as 20s, not ${quoted(String(delay))}`);
    appended.delayMs = delayMs;
    aheadMs = delayMs;
  }
  checkDelay(aheadMs, quotas);
  if (!isDateMs(nowMs + aheadMs)) throw invalid('the step is too far ahead');
  return appended;
}

function readWaitElement(value: unknown, { quotas, clock }: ReadServices): AppendedEntry {
  const members = objectOf(value, 'wait must be an object');
  const { eventId } = members;
  if (typeof eventId !== 'string') throw invalid('wait.eventId must be a string');
  checkNewName('event id', eventId);
  const timeout = timeoutMember(members['timeout']);
  const timeoutMs = timeoutMsOf(timeout, { quotas, nowMs: clock.nowMs() });
  return { kind: 'wait', eventId, timeout, timeoutMs, ...stepMember(members['step']) };
}

function readCallElement(value: unknown, services: ReadServices): AppendedEntry {
  const command = readMessage(value, services);
  const { run } = command.options;
  if (run?.kind !== 'append' || run.callType !== 'toCallback') {
    throw invalid('a call needs Upstash-Workflow-Init: false, and the call type toCallback');
  }
  return { kind: 'call', command };
}

async function readInvokeElement(value: unknown, services: ReadServices): Promise<AppendedEntry> {
  const command = await completeRunPublish(readMessage(value, services), services, services.clock.nowMs());
  if (!command.invocation) {
    throw invalid('an invocation needs Upstash-Workflow-Init: true and Upstash-Workflow-Invoke: true');
  }
  return { kind: 'invoke', command };
}

/** Reads a message like an item of a batch. Addresses are checked only at delivery, as for all messages of a run. */
function readMessage(value: unknown, { quotas, limits, proxyHeaders, clock }: ReadServices): PublishCommand {
  const item = readItem(value, { bytesMax: limits.headerBytesMax, linesMax: HEADER_LINES_MAX });
  const { destination, rawHeaders, body } = item;
  if (destination.kind !== 'url' || item.queue !== '') throw invalid('the destination must be a URL, without a queue');
  const limit = messageLimit(limits.messageBytesMax);
  if (body.length > limit.bytesMax) throw bodyTooLarge(limit);
  const input = { rawHeaders, queryConfig: [], tokenInQuery: true, proxyHeaders };
  const options = readPublishOptions(input, 'publish', quotas, clock.nowMs());
  if (options.cron !== undefined) throw invalid('a message of a run has no cron expression');
  return { url: destination.url, body, options };
}

function withElement(index: number, error: unknown): unknown {
  return error instanceof ApiError ? new ApiError(error.code, `${error.message} (append[${index}])`) : error;
}

function invalid(reason: string): ApiError {
  return new ApiError('unprocessable', `invalid checkpoint: ${reason}`);
}
