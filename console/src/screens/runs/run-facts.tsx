/** What is known of a run besides its steps. */
import type { Step } from '../../generated/interface.ts';
import { Code } from '../../parts/copy.tsx';
import { Facts, Panel } from '../../parts/panel.tsx';
import { duration, exactTime, Time, useNowMs } from '../../parts/time.tsx';
import { CutBody } from './cut-body.tsx';
import type { Run } from './data.ts';
import { RunLink } from './run-link.tsx';

export function RunFacts({ run }: { run: Run }) {
  const nowMs = useNowMs();
  const { workflowRunCreatedAt: beganMs, workflowRunCompletedAt: endedMs, invoker, predecessor, successor } = run;
  const input = inputOf(run);
  return (
    <Panel title="Run">
      <div className="flex flex-col gap-3">
        <Facts
          facts={[
            [
              'Began',
              <>
                {exactTime(beganMs)} (<Time atMs={beganMs} />)
              </>,
            ],
            [endedMs === undefined ? 'Runs for' : 'Took', duration((endedMs ?? nowMs) - beganMs)],
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
            ['Triggered from', run.workflowRunCallerIp],
            ['In the DLQ as', run.dlqId && <Code>{run.dlqId}</Code>],
          ]}
        />
        <h3 className="text-xs font-medium text-quiet">Input</h3>
        <CutBody run={{ id: run.workflowRunId, createdAtMs: beganMs }} text={input} pick={inputOf} />
      </div>
    </Panel>
  );
}

/** The payload is the output of a step before the first. */
function inputOf({ steps }: Run): string | undefined {
  const [first] = steps[0]?.steps ?? [];
  return (first as Step | undefined)?.out;
}
