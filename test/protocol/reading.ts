import {
  type OptionsContext,
  type OptionsInput,
  type Quotas,
  readPublishOptions,
} from '../../src/protocol/options/options.ts';
import type { PublishOptions } from '../../src/protocol/options/settings.ts';
import { refusalOf } from './refusal.ts';

/** 2023-11-14, when every request of these tests is accepted. */
export const nowMs = 1_700_000_000_000;
export const defaultQuotas: Quotas = {
  retriesDefault: 3,
  retriesMax: 10,
  delayMsMax: 604_800_000,
  timeoutMsMax: 7_200_000,
};

interface Request extends Partial<OptionsInput> {
  context?: OptionsContext;
  quotas?: Partial<Quotas>;
}

/** The options of a request with these flat headers, the rest as in an ordinary publish. */
export function read(rawHeaders: string[], { context = 'publish', quotas, ...input }: Request = {}): PublishOptions {
  const whole = { rawHeaders, queryConfig: [], tokenInQuery: false, proxyHeaders: ['x-forwarded-*', 'via'], ...input };
  return readPublishOptions(whole, context, { ...defaultQuotas, ...quotas }, nowMs);
}

/** The error text with which such a request is refused. */
export function messageOf(rawHeaders: string[], request?: Request): string {
  return refusalOf(() => read(rawHeaders, request)).message;
}
