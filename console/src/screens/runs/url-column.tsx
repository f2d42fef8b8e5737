import type { ListColumn } from '../../parts/long-list.tsx';

/** Where a run is served, in every list of runs. */
export const URL_COLUMN: ListColumn<{ workflowUrl: string }> = {
  name: 'URL',
  className: 'max-md:hidden',
  cell: ({ workflowUrl }) => (
    <p className="truncate" title={workflowUrl}>
      <bdi>{workflowUrl}</bdi>
    </p>
  ),
};
