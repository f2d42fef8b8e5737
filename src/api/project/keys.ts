/** Reads and rotates the project's signing keys (contract M 10.3, 22.37, 22.38), and verifies signatures for diagnosis. */
import { invalidBody } from '../../protocol/errors.ts';
import { objectOf } from '../../protocol/json-objects.ts';
import { verifySignature } from '../../protocol/signature.ts';
import { SMALL_JSON_LIMIT } from '../limits.ts';
import { readJson } from '../requests/json-body.ts';
import { type ApiResponse, jsonResponse } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import { SignatureCheckSchema, SignatureVerdictSchema, SigningKeysSchema } from '../schemas.ts';

export function keyRoutes({ accounts }: Services): Route[] {
  async function get({ projectId }: Call): Promise<ApiResponse> {
    const { current, next } = await accounts.signingKeys(projectId);
    return jsonResponse(200, { current, next });
  }

  async function rotate({ projectId }: Call): Promise<ApiResponse> {
    const { current, next } = await accounts.rotate(projectId);
    return jsonResponse(200, { current, next });
  }

  const rotation = { responses: { 200: SigningKeysSchema }, handle: rotate };
  return [
    {
      ...row('full', 'GET', '/v2/keys', 'getSigningKeys'),
      summary: 'Reads the signing keys.',
      responses: { 200: SigningKeysSchema },
      handle: get,
    },
    {
      ...row('full', 'POST', '/v2/keys/rotate', 'rotateSigningKeys'),
      ...rotation,
      summary: 'Makes the next signing key the current one.',
    },
    {
      ...row('full', 'POST', '/v2/rotate', 'rotateSigningKeysOfOldClients'),
      ...rotation,
      summary: 'The same as /v2/keys/rotate, for older clients.',
    },
  ];
}

export function signatureRoutes({ accounts, clock }: Services): Route[] {
  async function verify({ projectId, body }: Call): Promise<ApiResponse> {
    const check = readSignatureCheck(await readJson(body, SMALL_JSON_LIMIT));
    const { current, next } = await accounts.signingKeys(projectId);
    const nowS = Math.floor(clock.nowMs() / 1000);
    const verdict = verifySignature({ ...check, signingKeys: [current, next], nowS });
    return jsonResponse(200, verdict.valid ? { isValid: true } : { isValid: false, failed: verdict.failures });
  }

  return [
    {
      ...row('full', 'POST', '/v2/waypost/signature/verify', 'verifySignature'),
      summary:
        'Verifies a signature as a receiver does, with the signing keys of the project, and lists the checks that fail.',
      takes: { body: SignatureCheckSchema },
      responses: { 200: SignatureVerdictSchema },
      handle: verify,
    },
  ];
}

/** Throws 400. */
function readSignatureCheck(json: unknown): { token: string; body: Uint8Array; url?: string } {
  const { signature, body, url } = objectOf(json, 'an object is needed');
  if (typeof signature !== 'string') throw invalidBody('signature must be a string');
  if (typeof body !== 'string') throw invalidBody('body must be a string');
  if (url === undefined || url === null) return { token: signature, body: Buffer.from(body) };
  if (typeof url !== 'string') throw invalidBody('url must be a string');
  return { token: signature, body: Buffer.from(body), url };
}
