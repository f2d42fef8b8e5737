import type { ListColumn } from '../../parts/long-list.tsx';

/** The URL of a run's workflow, in every list of runs. */
export const URL_COLUMN: ListColumn<{ workflowUrl: string }> = {
  name: 'URL',
  className: 'max-md:hidden',
  cell: ({ workflowUrl }) => (
    <p className="truncate" title={workflowUrl}>
      <bdi>{workflowUrl}</bdi>
    </p>
  ),
};
