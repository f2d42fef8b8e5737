/** Empty, failed and loading states of a screen. */
import type { UseQueryResult } from '@tanstack/react-query';
import type { RequestError } from '../api/client.ts';
import { Button } from './button.tsx';

/** An empty state, whose text should name the next action of the user. */
export function Empty({ title, children }: { title: string; children?: React.ReactNode }) {
  return (
    <div className="flex flex-col items-center gap-2 px-4 py-10 text-center">
      <p className="font-medium">{title}</p>
      {children !== undefined && <div className="w-full max-w-prose text-quiet">{children}</div>}
    </div>
  );
}

export function Failure({ error, retry }: { error: Error; retry?: () => void }) {
  return (
    <div
      role="alert"
      className="flex flex-wrap items-center gap-3 rounded-md border border-line bg-raised px-3 py-2 text-bad"
    >
      <span className="min-w-0 break-words">{error.message}</span>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

/** Shows the response, or before the first response the loading state or the error. An old response stays visible. */
export function QueryResult<T>({
  query,
  children,
}: {
  query: UseQueryResult<T, RequestError>;
  children: (data: T) => React.ReactNode;
}) {
  const { data, error, refetch } = query;
  return (
    <>
      {error && <Failure error={error} retry={() => void refetch()} />}
      {data !== undefined && children(data)}
      {data === undefined && !error && (
        <p role="status" className="px-4 py-6 text-quiet">
          Loading…
        </p>
      )}
    </>
  );
}
