/** The reason why a run is waiting, or why it failed. */
import { useCall } from '../../api/client.ts';
import { Body } from '../../parts/body.tsx';
import { Sentence, Time } from '../../parts/time.tsx';
import { isInProgress, type Run } from './data.ts';
import { failureOf } from './failure.ts';

export function Explanation({ run }: { run: Run }) {
  const failure = failureOf(run);
  if (failure === undefined) return <WaitExplanation run={run} />;
  const { step, error, message, response } = failure;
  return (
    <section aria-label="Failure" className="flex flex-col gap-2 rounded-lg border border-bad bg-panel p-4">
      <p className="font-medium break-words text-bad">
        {step === undefined ? 'The run failed' : `The step “${step}” failed`}: {message ?? error}
      </p>
      {message !== undefined && <p className="text-quiet">Response: {error}.</p>}
      {response !== '' && (
        <details>
          <summary className="text-quiet">The last response of the app</summary>
          <div className="pt-2">
            <Body text={response} />
          </div>
        </details>
      )}
    </section>
  );
}

function WaitExplanation({ run }: { run: Run }) {
  const { data, error } = useCall(
    'explainWorkflowRun',
    { path: { workflowRunId: run.workflowRunId } },
    isInProgress(run) ? {} : { refreshMs: 0 },
  );
  // The explanation is for the latest run with this id.
  if (!data || error || data.workflowCreatedAt !== run.workflowRunCreatedAt || !isInProgress(run)) return null;
  return (
    <section aria-label="Explanation" className="rounded-lg border border-line bg-panel p-4">
      <p className="break-words">
        <Sentence>{data.explanation}</Sentence>
      </p>
      <p className="flex flex-wrap gap-x-3 text-xs text-quiet">
        {data.due !== undefined && data.reason !== 'waiting' && (
          <span>
            Continues <Time atMs={data.due} />
          </span>
        )}
        {data.others > 0 && (
          <span>
            {data.others} other unfinished {data.others === 1 ? 'step' : 'steps'}
          </span>
        )}
      </p>
    </section>
  );
}
