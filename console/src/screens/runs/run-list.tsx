/** The runs that match a filter, newest first, with bulk cancel. */
import { useState } from 'react';
import { nextPageLoaderOf, usePages } from '../../api/pages.ts';
import { StateBadge } from '../../parts/badge.tsx';
import { BulkDialog } from '../../parts/bulk-dialog.tsx';
import { Button } from '../../parts/button.tsx';
import { CodeBlock } from '../../parts/code-block.tsx';
import { countOf } from '../../parts/count.ts';
import { type ListColumn, LongList } from '../../parts/long-list.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, QueryResult } from '../../parts/states.tsx';
import { duration, Time, useNowMs } from '../../parts/time.tsx';
import { cancelJob } from './bulk.ts';
import { isParked, type Run } from './data.ts';
import { RunLink } from './run-link.tsx';
import { URL_COLUMN } from './url-column.tsx';

/** Small, since each run is loaded with its steps. */
const PAGE_COUNT = 10;
const GRID =
  'grid-cols-[5rem_minmax(0,1fr)_4.5rem] md:grid-cols-[6rem_minmax(0,3fr)_minmax(0,3fr)_minmax(0,1fr)_7rem_6rem_4rem]';

const COLUMNS: readonly ListColumn<Run>[] = [
  { name: 'State', cell: (run) => <StateBadge state={isParked(run) ? 'STEP_PARKED' : run.workflowState} /> },
  {
    name: 'Run',
    cell: (run) => (
      <>
        <RunLink id={run.workflowRunId} createdAtMs={run.workflowRunCreatedAt}>
          <span className="block truncate">{run.workflowRunId}</span>
        </RunLink>
        <p className="truncate text-xs text-quiet md:hidden">
          <bdi>{run.workflowUrl}</bdi>
        </p>
      </>
    ),
  },
  URL_COLUMN,
  { name: 'Labels', className: 'truncate text-quiet max-md:hidden', cell: ({ labels = [] }) => labels.join(', ') },
  { name: 'Started', className: 'text-quiet max-md:hidden', cell: (run) => <Time atMs={run.workflowRunCreatedAt} /> },
  { name: 'Duration', className: 'text-right text-quiet tabular-nums', cell: (run) => <RunDuration run={run} /> },
  { name: 'Steps', className: 'text-right tabular-nums max-md:hidden', cell: stepsOf },
];

export function RunList({ filter }: { filter: Record<string, string> }) {
  const [isPaused, setIsPaused] = useState(false);
  const [isCancelling, setIsCancelling] = useState(false);
  const query = { ...filter, count: PAGE_COUNT, trimBody: 0 } as never;
  const pages = usePages('listWorkflowRuns', { query }, { isRefreshed: !isPaused });
  const rows: Run[] = pages.data?.pages.flatMap(({ runs }): Run[] => runs) ?? [];
  const isFiltered = Object.keys(filter).length > 0;
  const mayBeActive = filter['state'] === undefined || filter['state'] === 'RUN_STARTED';
  return (
    <Panel
      title={rows.length === 0 ? 'Runs' : countOf(rows.length, 'run', pages.hasNextPage)}
      actions={
        rows.length > 0 &&
        mayBeActive && (
          <Button kind="danger" onClick={() => setIsCancelling(true)}>
            Cancel {isFiltered ? 'matching active runs' : 'all active runs'}…
          </Button>
        )
      }
    >
      <QueryResult query={pages}>
        {() =>
          rows.length === 0 && !pages.hasNextPage ? (
            isFiltered ? (
              <Empty title="No run matches this filter" />
            ) : (
              <FirstRun />
            )
          ) : (
            <LongList
              label="Workflow runs"
              columns={COLUMNS}
              grid={GRID}
              rows={rows}
              keyOf={(run) => `${run.workflowRunId}@${run.workflowRunCreatedAt}`}
              onEnd={nextPageLoaderOf(pages)}
              onPause={setIsPaused}
            />
          )
        }
      </QueryResult>
      {isCancelling && <BulkDialog job={cancelJob(filter)} onClose={() => setIsCancelling(false)} />}
    </Panel>
  );
}

function RunDuration({ run }: { run: Run }) {
  const nowMs = useNowMs();
  return duration((run.workflowRunCompletedAt ?? nowMs) - run.workflowRunCreatedAt);
}

/** Excludes the input, which the API lists as a step, and steps that have not started. */
function stepsOf({ steps }: Run): number {
  return steps.reduce((sum, group) => sum + (group.type === 'next' ? 0 : group.steps.length), -1);
}

const EXAMPLE = `import { serve } from '@upstash/workflow/hono';

app.post('/order', serve(async (context) => {
  await context.run('reserve', () => reserve(context.requestPayload));
  await context.sleep('give time to reconsider', '1h');
  await context.run('ship', ship);
}));

// and start it, with QSTASH_URL and QSTASH_TOKEN of this server:
await new Client().trigger({ url: 'http://localhost:3000/order', body: { item: 'lamp' } });`;

function FirstRun() {
  return (
    <Empty title="No workflow runs yet">
      <p>
        A workflow is a function in your app, served with <code>@upstash/workflow</code>. Each trigger starts a run,
        which appears here with all its steps:
      </p>
      <div className="mt-3">
        <CodeBlock label="A workflow and its trigger">{EXAMPLE}</CodeBlock>
      </div>
    </Empty>
  );
}
