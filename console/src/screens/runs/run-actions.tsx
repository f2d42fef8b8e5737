/** What can be done with a run: cancel it, wake it, have it tried again, or start it again. */
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
              Try again now
            </Action>
          )}
          <Button onClick={() => setIsNotifying(true)}>Send an event…</Button>
          <Action
            operation="endWorkflowRun"
            // Another run may have this id by now.
            input={{ path, query: { cancel: 'true' }, headers: { 'Upstash-Workflow-CreatedAt': String(createdAtMs) } }}
            kind="danger"
            question="It does no further step, and a cancelled run cannot be resumed. Runs that it has invoked go on."
          >
            Cancel the run
          </Action>
        </>
      )}
      {dlqId !== undefined && workflowState === 'RUN_FAILED' && (
        <>
          <StartAgain
            id="resumeWorkflowRun"
            dlqId={dlqId}
            kind="main"
            name="Resume"
            about="Goes on with the step that failed"
          />
          <StartAgain
            id="restartWorkflowRun"
            dlqId={dlqId}
            kind="plain"
            name="Restart"
            about="Begins anew, with the same input"
          />
        </>
      )}
      {dlqId !== undefined && (
        <Action
          operation="deleteFailedWorkflowRun"
          input={{ path: { dlqId } }}
          kind="danger"
          question="It leaves the DLQ for good, and can be resumed no more. Its timeline stays for as long as logs are kept."
        >
          Delete from the DLQ
        </Action>
      )}
      {dlqId !== undefined && failureFunction?.state === 'CALLBACK_FAIL' && (
        <Action operation="repeatFailureCallback" input={{ path: { dlqId } }}>
          Repeat the failure callback
        </Action>
      )}
      {dlqId !== undefined && failureFunction?.state === 'CALLBACK_INPROGRESS' && (
        <Action operation="cancelFailureCallback" input={{ path: { dlqId } }}>
          Give up the failure callback
        </Action>
      )}
      {isNotifying && (
        <NotifyDialog runId={run.workflowRunId} waitsFor={eventsOf(run)} onClose={() => setIsNotifying(false)} />
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

/** The run that it makes has a page of its own, to which this leads. */
function StartAgain({ id, dlqId, kind, name, about }: StartProps) {
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

/** What its steps wait for now. */
function eventsOf({ steps }: Run): string[] {
  const waiting = steps.flatMap((group) => (group.type === 'next' ? [] : group.steps));
  return waiting.flatMap(({ state, stepType, waitEventId }) =>
    state === 'STEP_PROGRESS' && stepType === 'Wait' && waitEventId !== undefined ? [waitEventId] : [],
  );
}
