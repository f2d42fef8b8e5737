/** Paginated lists: the next page is loaded when the last rows are visible. */
import { type InfiniteData, type UseInfiniteQueryResult, useInfiniteQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { call, type Input, type OperationId, REFRESH_MS, type RequestError, type ResponseOf } from './client.ts';

/** The operations whose responses may have a cursor. */
export type PagedId = {
  [Id in OperationId]: ResponseOf<Id> extends { cursor?: string } ? Id : never;
}[OperationId];

interface Options<Page> {
  isEnabled?: boolean;
  /** Only a list of a single page reloads automatically; more pages would mean too many requests. */
  isRefreshed?: boolean | ((page: Page) => boolean);
}

export function usePages<Id extends PagedId>(
  id: Id,
  input: Input<Id>,
  { isEnabled = true, isRefreshed = true }: Options<ResponseOf<Id>> = {},
): UseInfiniteQueryResult<InfiniteData<ResponseOf<Id>>, RequestError> {
  return useInfiniteQuery<
    ResponseOf<Id>,
    RequestError,
    InfiniteData<ResponseOf<Id>>,
    readonly unknown[],
    string | undefined
  >({
    queryKey: [id, 'pages', input],
    queryFn: ({ pageParam, signal }) =>
      call(id, { ...input, query: { ...input.query, ...(pageParam && { cursor: pageParam }) } as never }, signal),
    initialPageParam: undefined,
    getNextPageParam: (page) => (page as { cursor?: string }).cursor,
    enabled: isEnabled,
    refetchInterval: ({ state }) => {
      const [page, ...others] = state.data?.pages ?? [];
      const isWanted = typeof isRefreshed === 'boolean' || page === undefined ? isRefreshed : isRefreshed(page);
      return isWanted && others.length === 0 ? REFRESH_MS : false;
    },
  });
}

/** The rows of all pages: the same array until a page is reloaded. `select` must be a stable function. */
export function useRows<Page, Row>(
  data: InfiniteData<Page> | undefined,
  select: (page: Page) => readonly Row[],
): Row[] {
  return useMemo(() => data?.pages.flatMap(select) ?? [], [data, select]);
}

/** Loads the next page, unless it is already loading. */
export function nextPageLoaderOf({
  hasNextPage,
  isFetching,
  fetchNextPage,
}: Pick<UseInfiniteQueryResult, 'hasNextPage' | 'isFetching' | 'fetchNextPage'>): (() => void) | undefined {
  return hasNextPage && !isFetching ? () => void fetchNextPage() : undefined;
}
