/** One run: its state with the reason, its timeline, and its actions. */
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { Badge, StateBadge } from '../../parts/badge.tsx';
import { Page, Panel } from '../../parts/panel.tsx';
import { Empty, QueryResult } from '../../parts/states.tsx';
import { isParked, type Run, type RunWithEvents, useRuns } from './data.ts';
import { Explanation } from './explanation.tsx';
import { Journal } from './journal.tsx';
import { RunActions } from './run-actions.tsx';
import { RunFacts } from './run-facts.tsx';
import { RunTimeline } from './run-timeline.tsx';
import { TruncatedBody } from './truncated-body.tsx';

const NO_RESULT: Record<Run['workflowState'], string> = {
  RUN_STARTED: 'The run has not returned yet.',
  RUN_SUCCESS: 'The run returned nothing.',
  RUN_FAILED: 'The run failed before it returned.',
  RUN_CANCELED: 'The run was cancelled before it returned.',
};

export function Screen() {
  const { runId } = useParams({ from: '/runs/$runId' });
  const { at } = useSearch({ from: '/runs/$runId' });
  const [found] = useRuns([{ id: runId, createdAtMs: at === undefined ? undefined : Number(at) }]);
  return (
    found && (
      <QueryResult query={found}>
        {(shown) =>
          shown === null ? <RunNotFound runId={runId} /> : <RunPage key={shown.run.workflowRunCreatedAt} {...shown} />
        }
      </QueryResult>
    )
  );
}

function RunNotFound({ runId }: { runId: string }) {
  return (
    <Page title={runId}>
      <Panel>
        <Empty title="Run not found">
          The id is wrong, the logs of the run have expired, or it belongs to another project.
        </Empty>
      </Panel>
    </Page>
  );
}

function RunPage(shown: RunWithEvents) {
  const { run } = shown;
  const { step } = useSearch({ from: '/runs/$runId' });
  const navigate = useNavigate({ from: '/runs/$runId' });
  const select = (key: string | undefined): void => {
    void navigate({ search: (old) => ({ ...old, step: key }), replace: true, resetScroll: false });
  };
  return (
    <Page
      title={run.workflowRunId}
      about={
        <span className="flex flex-wrap items-center gap-2 pt-1">
          <StateBadge state={isParked(run) ? 'STEP_PARKED' : run.workflowState} />
          {run.labels?.map((label) => (
            <Badge key={label} tone="quiet">
              {label}
            </Badge>
          ))}
          <bdi className="break-all">{run.workflowUrl}</bdi>
        </span>
      }
      actions={<RunActions run={run} />}
    >
      <Explanation run={run} />
      <Panel title="Timeline">
        <RunTimeline shown={shown} selected={step} onSelect={select} />
      </Panel>
      <div className="grid gap-4 lg:grid-cols-2">
        <RunFacts run={run} />
        <Panel title="Result">
          {run.workflowRunResponse === undefined ? (
            <p className="text-quiet">{NO_RESULT[run.workflowState]}</p>
          ) : (
            <TruncatedBody
              run={{ id: run.workflowRunId, createdAtMs: run.workflowRunCreatedAt }}
              text={run.workflowRunResponse}
              pick={(whole) => whole.workflowRunResponse}
            />
          )}
        </Panel>
      </div>
      <Journal shown={shown} />
    </Page>
  );
}
