/** What does a route take in a request besides path and token? */
import type { TSchema } from '@sinclair/typebox';
import type { ConfigHeader } from './config-headers.ts';
import type { Amount, FilterUse } from './filters.ts';

/** What a request may hold, for the interface document: the handlers read and check it themselves. */
export interface Takes {
  /** Filters in the query; bulk actions read them from a JSON object in the body too (contract M 21.3). */
  filters?: { use: FilterUse; amount: Amount };
  /** Parameters of the query besides filters. */
  query?: readonly QueryParameter[];
  configHeaders?: readonly ConfigHeader[];
  /** Whether they may stand in the query too, as on all paths that end in a destination. */
  isConfiguredByQuery?: true;
  /** A JSON body of this shape, or bytes of any content type. */
  body?: TSchema | 'bytes';
}

/** A parameter of the query as the interface document shows it. */
export interface QueryParameter {
  name: string;
  meaning: string;
  schema: TSchema;
}
