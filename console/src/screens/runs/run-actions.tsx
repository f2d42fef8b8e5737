/** What can be done with a run: cancel it, wake it, or start it again. */
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { type OperationId, useChange } from '../../api/client.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Failure } from '../../parts/states.tsx';
import type { Run } from './data.ts';
import { NotifyDialog } from './notify-dialog.tsx';

export function RunActions({ run }: { run: Run }) {
  const { workflowState, dlqId, failureFunction } = run;
  const [isOpen, setIsOpen] = useState<'cancel' | 'notify'>();
  const close = (): void => setIsOpen(undefined);
  return (
    <>
      {workflowState === 'RUN_STARTED' && (
        <>
          <Button onClick={() => setIsOpen('notify')}>Send an event…</Button>
          <Button kind="danger" onClick={() => setIsOpen('cancel')}>
            Cancel…
          </Button>
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
      {dlqId !== undefined && failureFunction?.state === 'CALLBACK_FAIL' && (
        <CallbackChange id="repeatFailureCallback" dlqId={dlqId} name="Repeat the failure callback" />
      )}
      {dlqId !== undefined && failureFunction?.state === 'CALLBACK_INPROGRESS' && (
        <CallbackChange id="cancelFailureCallback" dlqId={dlqId} name="Give up the failure callback" />
      )}
      {isOpen === 'cancel' && <CancelDialog run={run} onClose={close} />}
      {isOpen === 'notify' && <NotifyDialog run={run} onClose={close} />}
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

interface CallbackProps {
  id: OperationId & ('repeatFailureCallback' | 'cancelFailureCallback');
  dlqId: string;
  name: string;
}

function CallbackChange({ id, dlqId, name }: CallbackProps) {
  const change = useChange(id);
  return (
    <>
      <Button disabled={change.isPending} onClick={() => change.mutate({ path: { dlqId } })}>
        {name}
      </Button>
      {change.error && <Failure error={change.error} />}
    </>
  );
}

function CancelDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const change = useChange('endWorkflowRun');
  const cancel = (): void => {
    change.mutate(
      {
        path: { workflowRunId: run.workflowRunId },
        query: { cancel: 'true' },
        // Another run may have this id by now.
        headers: { 'Upstash-Workflow-CreatedAt': String(run.workflowRunCreatedAt) },
      },
      { onSuccess: onClose },
    );
  };
  return (
    <Dialog
      title="Cancel this run?"
      onClose={onClose}
      actions={
        <Button kind="danger" disabled={change.isPending} onClick={cancel}>
          Cancel the run
        </Button>
      }
    >
      <p>It does no further step, and a cancelled run cannot be resumed. Runs that it has invoked go on.</p>
      {change.error && <Failure error={change.error} />}
    </Dialog>
  );
}
