/** Saves the results of steps in the middle of a call, which then continues (contract K 3, 4). */
import { hash } from 'node:crypto';
import type { CheckpointCommand, CheckpointResult, Handover } from '../../engine/calls/commands.ts';
import { ApiError } from '../../protocol/errors.ts';
import { type CheckpointClaim, mintCheckpointToken, readCheckpointToken } from '../../protocol/workflow/checkpoints.ts';
import type { Accounts } from '../accounts.ts';
import { bearerToken, unauthenticated } from '../edge/authentication.ts';
import type { CheckpointRequest } from '../edge/other-workers.ts';
import { JSON_INLINE_BYTES_MAX, JSON_MEMORY_PER_BYTE } from '../requests/json-body.ts';
import { type ApiResponse, errorResponse } from '../response.ts';
import { type Call, headerOf, type Route, row, type Services } from '../route.ts';
import { CheckpointSavedSchema, CheckpointSchema } from '../schemas.ts';
import { parseCheckpoint } from './checkpoint-json.ts';
import { readCheckpoint } from './checkpoint-request.ts';

const PATH = '/v2/waypost/checkpoints';

/** Limits the JSON values outside the steps of a checkpoint: `perItem` for each element allowed, but at least `least`. */
const VALUES_OUTSIDE_STEPS = { perItem: 100, least: 2_500 };

const ERRORS = {
  lost: 'the call is given up, or its message is done already: stop, and respond to the call with a failure',
  ended: 'the workflow run is over',
} as const;

export function checkpointRoutes(services: Services): Route[] {
  const { engine, accounts, limits, json, log, others } = services;

  const othersMax = Math.max(VALUES_OUTSIDE_STEPS.least, limits.batchItemsMax * VALUES_OUTSIDE_STEPS.perItem);

  async function checkpoint({ rawHeaders, body, callerIp, leaving }: Call): Promise<ApiResponse> {
    const authorization = headerOf(rawHeaders, 'authorization');
    const caller = callerClaimOf(accounts, authorization);
    if (!caller) throw unauthenticated();
    body.countFor(caller.projectId);
    const bytes = await body.read({
      bytesMax: limits.batchBytesMax,
      setting: 'batch_bytes_max',
      memoryPerByte: JSON_MEMORY_PER_BYTE,
    });
    const sent: CheckpointRequest = { caller, token: bearerToken(authorization) ?? '', body: bytes, callerIp };
    // Only the worker that makes the call can continue it. If that worker is unavailable, the checkpoint is saved here.
    const isElsewhere = others && caller.worker !== others.own;
    const response = isElsewhere && (await others.forward(caller.worker, sent, leaving()));
    return response || carryOut(sent, { leaving, releaseBody: () => body.release() });
  }

  /**
   * Saves a checkpoint from another worker. Resolves to `undefined` if this worker does not make the checkpoint's call.
   */
  async function carryOutForOther(sent: CheckpointRequest, leaving: AbortSignal): Promise<ApiResponse | undefined> {
    if (!engine.hasCall(sent.caller.claimToken)) return undefined;
    return carryOut(sent, { leaving: () => leaving, releaseBody: () => {} }).catch((error: unknown) =>
      errorResponse(error, log, PATH),
    );
  }

  async function carryOut(
    { caller, token: callerToken, body, callerIp }: CheckpointRequest,
    { leaving, releaseBody }: { leaving: () => AbortSignal; releaseBody: () => void },
  ): Promise<ApiResponse> {
    const bodyHash = hash('sha256', body, 'base64url');
    const request = await readCheckpoint(() => parse(body), services);
    const { projectId, runKey } = caller;
    // Usually the checkpoint has only one token, the caller's.
    const claimOf = (token: string, element: string) =>
      token === callerToken ? caller : readClaim(token, element, caller);
    const done = request.done.map((token, at) => claimOf(token, `done[${at}]`));
    const { append, lingerMs } = request;
    const command: CheckpointCommand = { runKey, done, append, hash: bodyHash };
    if (callerIp !== undefined) command.callerIp = callerIp;
    if (request.failed.length > 0) {
      command.failed = request.failed.map(({ token, outcome }, at) => ({
        ...claimOf(token, `failed[${at}]`),
        outcome,
      }));
    }
    if (lingerMs !== undefined) Object.assign(command, { lingerMs, hangUp: leaving() });
    const outcome = await engine.checkpoint(projectId, command);
    if (outcome.kind === 'saved') {
      // An idle call must not keep the memory of its request.
      if (outcome.next) releaseBody();
      return { status: 200, json: savedJson(outcome, await outcome.next, caller) };
    }
    return { status: 409, json: JSON.stringify({ error: ERRORS[outcome.kind], reason: outcome.kind }) };
  }

  function parse(bytes: Uint8Array<ArrayBuffer>): unknown {
    return bytes.length > JSON_INLINE_BYTES_MAX
      ? json.checkpoint(bytes, othersMax)
      : parseCheckpoint(bytes, othersMax).value;
  }

  /**
   * The claim of a token in the body, which must be for the caller's run. `element` names the place of the token in the
   * body.
   */
  function readClaim(token: string, element: string, caller: CheckpointClaim): CheckpointClaim {
    const claim = readCheckpointToken(token, (projectId) => accounts.cachedSigningKeys(projectId));
    if (claim && claim.projectId === caller.projectId && claim.runKey === caller.runKey) return claim;
    throw new ApiError('unprocessable', `invalid checkpoint: ${element} is not a token of this run`);
  }

  function savedJson(
    { entries }: Extract<CheckpointResult, { kind: 'saved' }>,
    next: Handover | undefined,
    { projectId, runKey }: CheckpointClaim,
  ): string {
    const worker = others?.own ?? 0;
    const [signingKey = ''] = accounts.cachedSigningKeys(projectId);
    const claimMembers = ({
      messageId,
      key,
      claimToken,
    }: Pick<Handover, 'messageId' | 'key' | 'claimToken'>): string => {
      const token = mintCheckpointToken({ projectId, runKey, key, claimToken, worker }, signingKey);
      return `"messageId":"${messageId}","token":"${token}"`;
    };
    const elements = entries.map(({ messageId, claim }) =>
      claim ? `{${claimMembers({ messageId, ...claim })}}` : `{"messageId":"${messageId}"}`,
    );
    const nextJson = next ? `,"next":{${claimMembers(next)},"retried":${next.retried}${contentJson(next)}}` : '';
    return `{"entries":[${elements.join(',')}]${nextJson}}`;
  }

  others?.serve(carryOutForOther);

  return [
    {
      ...row('public', 'POST', PATH, 'saveCheckpoint'),
      summary:
        'Saves the results of steps while the endpoint of a run continues the same call. The token in Authorization is the one that was delivered with the call.',
      takes: { body: CheckpointSchema },
      refusals: [401, 409, 412, 413, 422, 429, 503],
      responses: { 200: CheckpointSavedSchema },
      handle: checkpoint,
    },
  ];
}

/** The members of `next` with the content that a delivery of the message would have. */
function contentJson({ content }: Handover): string {
  if (content.kind === 'journal') return `,"entries":${Buffer.from(content.entries).toString('latin1')}`;
  const headers = content.header ? `,"headers":${JSON.stringify(content.header)}` : '';
  // The result of a call is sent as JSON text.
  return content.kind === 'callResult' ? `${headers},"body":${JSON.stringify(textOf(content.body))}` : headers;
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

/** The claim that the caller received with a delivery; `undefined` if the token was not issued by this server. */
export function callerClaimOf(
  accounts: Pick<Accounts, 'cachedSigningKeys'>,
  authorization: string | undefined,
): CheckpointClaim | undefined {
  const token = bearerToken(authorization);
  return token === undefined
    ? undefined
    : readCheckpointToken(token, (projectId) => accounts.cachedSigningKeys(projectId));
}
