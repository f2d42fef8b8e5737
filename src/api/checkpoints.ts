/** Keeps what the endpoint of a run has done so far in one call, which then goes on (contract K 3, 4). */
import { hash } from 'node:crypto';
import type { CheckpointAnswer, CheckpointCommand } from '../engine/calls/commands.ts';
import { ApiError } from '../protocol/errors.ts';
import { type CheckpointClaim, mintCheckpointToken, readCheckpointToken } from '../protocol/workflow/checkpoints.ts';
import type { Accounts } from './accounts.ts';
import { type Answer, answerToError } from './answer.ts';
import { bearerToken, unauthenticated } from './authentication.ts';
import { readCheckpoint } from './checkpoint-request.ts';
import { JSON_HERE_BYTES_MAX, JSON_MEMORY_PER_BYTE } from './json-body.ts';
import type { SentCheckpoint } from './other-workers.ts';
import { parseJson } from './parse-json.ts';
import type { Call, Route, Services } from './route.ts';
import { CheckpointSavedSchema, CheckpointSchema } from './schemas.ts';

const PATH = '/v2/waypost/checkpoints';

/** What a step returned is JSON of any kind. Its bytes are limited; each value takes some 50 more while it is read. */
const VALUES_MAX = 1_000_000;

const REFUSALS = {
  lost: 'the call is given up, or its message is done already: stop, and answer the call with a failure',
  ended: 'the workflow run is over',
} as const;

export function checkpointRoutes(services: Services): Route[] {
  const { engine, accounts, limits, json, log, others } = services;

  async function checkpoint({ rawHeaders, body, callerIp }: Call): Promise<Answer> {
    const authorization = headerOf(rawHeaders, 'authorization');
    const caller = claimOfCaller(accounts, authorization);
    if (!caller) throw unauthenticated();
    const bytes = await body.read({
      bytesMax: limits.batchBytesMax,
      setting: 'batch_bytes_max',
      memoryPerByte: JSON_MEMORY_PER_BYTE,
    });
    const sent: SentCheckpoint = { caller, token: bearerToken(authorization) ?? '', body: bytes, callerIp };
    // Only the worker that makes the call can let it go on. Without that one it is saved here.
    const isElsewhere = others && caller.worker !== others.own;
    return (isElsewhere && (await others.carryOut(caller.worker, sent))) || carryOut(sent);
  }

  /** What another worker was sent about a call of this one. */
  async function carryOutForOther(sent: SentCheckpoint): Promise<Answer | undefined> {
    if (!engine.hasCall(sent.caller.claimToken)) return undefined;
    return carryOut(sent).catch((error: unknown) => answerToError(error, log, PATH));
  }

  async function carryOut({ caller, token: own, body, callerIp }: SentCheckpoint): Promise<Answer> {
    const bodyHash = hash('sha256', body, 'base64url');
    const given = await readCheckpoint(() => parse(body), services);
    const { projectId, runKey } = caller;
    // Mostly the caller's token is the only one.
    const done = given.done.map((token, at) => (token === own ? caller : claimIn(token, at, caller)));
    const command: CheckpointCommand = { runKey, done, append: given.append, hash: bodyHash };
    if (callerIp !== undefined) command.callerIp = callerIp;
    const answered = await engine.checkpoint(projectId, command);
    if (answered.kind === 'saved') return { status: 200, json: savedJson(answered, caller) };
    return { status: 409, json: JSON.stringify({ error: REFUSALS[answered.kind], reason: answered.kind }) };
  }

  function parse(bytes: Uint8Array<ArrayBuffer>): unknown {
    return bytes.length > JSON_HERE_BYTES_MAX ? json.value(bytes, VALUES_MAX) : parseJson(bytes, VALUES_MAX);
  }

  /** The claim that a token of `done` names; it must be of the caller's run. */
  function claimIn(token: string, at: number, caller: CheckpointClaim): CheckpointClaim {
    const claim = readCheckpointToken(token, (projectId) => accounts.signingKeysKnown(projectId));
    if (claim && claim.projectId === caller.projectId && claim.runKey === caller.runKey) return claim;
    throw new ApiError('unprocessable', `invalid checkpoint: done[${at}] is not a token of this run`);
  }

  function savedJson({ entries }: Extract<CheckpointAnswer, { kind: 'saved' }>, caller: CheckpointClaim): string {
    const { projectId, runKey } = caller;
    const worker = others?.own ?? 0;
    const [signingKey = ''] = accounts.signingKeysKnown(projectId);
    const parts = entries.map(({ messageId, held }) => {
      if (!held) return `{"messageId":"${messageId}"}`;
      return `{"messageId":"${messageId}","token":"${mintCheckpointToken({ projectId, runKey, ...held, worker }, signingKey)}"}`;
    });
    return `{"entries":[${parts.join(',')}]}`;
  }

  others?.serve(carryOutForOther);

  return [
    {
      method: 'POST',
      path: PATH,
      operationId: 'saveCheckpoint',
      access: 'public',
      summary:
        'Keeps results of steps while the endpoint of a run goes on in the same call. The token in Authorization is the one that the call was delivered with.',
      takes: { body: CheckpointSchema },
      refusals: [401, 409, 412, 413, 422, 429, 503],
      answers: { 200: CheckpointSavedSchema },
      handle: checkpoint,
    },
  ];
}

/** Which claim the caller was given with a delivery; `undefined`: none of this server. */
export function claimOfCaller(
  accounts: Pick<Accounts, 'signingKeysKnown'>,
  authorization: string | undefined,
): CheckpointClaim | undefined {
  const token = bearerToken(authorization);
  return token === undefined
    ? undefined
    : readCheckpointToken(token, (projectId) => accounts.signingKeysKnown(projectId));
}

function headerOf(rawHeaders: readonly string[], wanted: string): string | undefined {
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() === wanted) return rawHeaders[at + 1];
  }
  return undefined;
}
