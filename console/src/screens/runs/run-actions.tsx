/** The buttons of a run: cancel, send an event, retry, resume, restart, delete. */
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useChange } from '../../api/client.ts';
import { Action } from '../../parts/action.tsx';
import { Button } from '../../parts/button.tsx';
import { Failure } from '../../parts/states.tsx';
import { isParked, type Run } from './data.ts';
import { NotifyDialog } from './notify-dialog.tsx';

export function RunActions({ run }: { run: Run }) {
  const { workflowState, dlqId, failureFunction, workflowRunCreatedAt: createdAtMs } = run;
  const [isNotifying, setIsNotifying] = useState(false);
  const path = { workflowRunId: run.workflowRunId };
  return (
    <>
      {workflowState === 'RUN_STARTED' && (
        <>
          {isParked(run) && (
            <Action operation="resumeParkedWorkflowRun" input={{ path }} kind="main">
              Retry now
            </Action>
          )}
          <Button onClick={() => setIsNotifying(true)}>Send an event…</Button>
          <Action
            operation="endWorkflowRun"
            // The time distinguishes this run from a later run with the same id.
            input={{ path, query: { cancel: 'true' }, headers: { 'Upstash-Workflow-CreatedAt': String(createdAtMs) } }}
            kind="danger"
            question="The run executes no further steps, and a cancelled run cannot be resumed. Runs that it has invoked continue."
          >
            Cancel run
          </Action>
        </>
      )}
      {dlqId !== undefined && workflowState === 'RUN_FAILED' && (
        <>
          <StartNewRun
            id="resumeWorkflowRun"
            dlqId={dlqId}
            kind="main"
            name="Resume"
            about="Starts a new run that continues with the failed step"
          />
          <StartNewRun
            id="restartWorkflowRun"
            dlqId={dlqId}
            kind="plain"
            name="Restart"
            about="Starts a new run from the beginning, with the same input"
          />
        </>
      )}
      {dlqId !== undefined && (
        <Action
          operation="deleteFailedWorkflowRun"
          input={{ path: { dlqId } }}
          kind="danger"
          question="The run is removed from the DLQ and can no longer be resumed. Its timeline stays until the logs expire."
        >
          Delete from the DLQ
        </Action>
      )}
      {dlqId !== undefined && failureFunction?.state === 'CALLBACK_FAIL' && (
        <Action operation="repeatFailureCallback" input={{ path: { dlqId } }}>
          Retry the failure callback
        </Action>
      )}
      {dlqId !== undefined && failureFunction?.state === 'CALLBACK_INPROGRESS' && (
        <Action operation="cancelFailureCallback" input={{ path: { dlqId } }}>
          Cancel the failure callback
        </Action>
      )}
      {isNotifying && (
        <NotifyDialog runId={run.workflowRunId} awaitedEvents={eventsOf(run)} onClose={() => setIsNotifying(false)} />
      )}
    </>
  );
}

interface StartProps {
  id: 'resumeWorkflowRun' | 'restartWorkflowRun';
  dlqId: string;
  kind: 'main' | 'plain';
  name: string;
  about: string;
}

/** Starts a new run and opens its page. */
function StartNewRun({ id, dlqId, kind, name, about }: StartProps) {
  const change = useChange(id);
  const navigate = useNavigate();
  const start = (): void => {
    change.mutate(
      { path: { dlqId } },
      {
        onSuccess: ({ workflowRunId, workflowCreatedAt }) =>
          void navigate({
            to: '/runs/$runId',
            params: { runId: workflowRunId },
            search: { at: String(workflowCreatedAt) },
          }),
      },
    );
  };
  return (
    <>
      <Button kind={kind} title={about} disabled={change.isPending} onClick={start}>
        {name}
      </Button>
      {change.error && <Failure error={change.error} />}
    </>
  );
}

/** The events that the steps of the run are waiting for. */
function eventsOf({ steps }: Run): string[] {
  const waiting = steps.flatMap((group) => (group.type === 'next' ? [] : group.steps));
  return waiting.flatMap(({ state, stepType, waitEventId }) =>
    state === 'STEP_PROGRESS' && stepType === 'Wait' && waitEventId !== undefined ? [waitEventId] : [],
  );
}
