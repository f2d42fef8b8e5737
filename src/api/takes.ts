/** What a route accepts in a request besides path and token. */
import type { TSchema } from '@sinclair/typebox';
import type { ConfigHeader } from './config-headers.ts';
import type { MessageFilters } from './filters.ts';
import type { Parameter } from './parameters.ts';

/** What a request may hold. Handlers read it by the same rows that the interface document shows. */
export interface Takes {
  /** Filters in the query; bulk actions read them from a JSON object in the body too (contract M 21.3). */
  filters?: Pick<MessageFilters, 'rows' | 'isBulk' | 'readsByIds'>;
  /** Parameters of the query besides filters. */
  query?: readonly Parameter[];
  configHeaders?: readonly ConfigHeader[];
  /** Whether config headers may also be in the query. They always may on paths that end in a destination. */
  isConfiguredByQuery?: true;
  /** A JSON body of this shape, or bytes of any content type. */
  body?: TSchema | 'bytes';
}
