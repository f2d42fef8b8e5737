/** The facts of a run, and its input. */
import type { Step } from '../../generated/interface.ts';
import { Code } from '../../parts/copy.tsx';
import { Facts, Panel } from '../../parts/panel.tsx';
import { duration, exactTime, Time, useNowMs } from '../../parts/time.tsx';
import type { Run } from './data.ts';
import { RunLink } from './run-link.tsx';
import { TruncatedBody } from './truncated-body.tsx';

export function RunFacts({ run }: { run: Run }) {
  const nowMs = useNowMs();
  const { workflowRunCreatedAt: startedMs, workflowRunCompletedAt: endedMs, invoker, predecessor, successor } = run;
  const input = inputOf(run);
  return (
    <Panel title="Run">
      <div className="flex flex-col gap-3">
        <Facts
          facts={[
            [
              'Started',
              <>
                {exactTime(startedMs)} (<Time atMs={startedMs} />)
              </>,
            ],
            [endedMs === undefined ? 'Running for' : 'Duration', duration((endedMs ?? nowMs) - startedMs)],
            [
              'Retry of',
              predecessor && <RunLink id={predecessor.workflowRunId} createdAtMs={predecessor.workflowRunCreatedAt} />,
            ],
            [
              'Retried as',
              successor && <RunLink id={successor.workflowRunId} createdAtMs={successor.workflowRunCreatedAt} />,
            ],
            [
              'Invoked by',
              invoker && <RunLink id={invoker.workflowRunId} createdAtMs={invoker.workflowRunCreatedAt} />,
            ],
            ['Flow-control key', run.flowControlKey && <Code>{run.flowControlKey}</Code>],
            ['Client IP', run.workflowRunCallerIp],
            ['DLQ id', run.dlqId && <Code>{run.dlqId}</Code>],
          ]}
        />
        <h3 className="text-xs font-medium text-quiet">Input</h3>
        <TruncatedBody run={{ id: run.workflowRunId, createdAtMs: startedMs }} text={input} pick={inputOf} />
      </div>
    </Panel>
  );
}

/** The API lists the input as the output of a step before the first real step. */
function inputOf({ steps }: Run): string | undefined {
  const [first] = steps[0]?.steps ?? [];
  return (first as Step | undefined)?.out;
}
