/** Sends an event to one run, or to all runs that wait for the event. */
import { useState } from 'react';
import { useCall, useChange } from '../../api/client.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Choice, TextArea, TextField } from '../../parts/field.tsx';
import { Failure } from '../../parts/states.tsx';

interface Props {
  runId: string;
  /** The events that the run is known to wait for. */
  awaitedEvents: readonly string[];
  onClose: () => void;
}

export function NotifyDialog({ runId, awaitedEvents, onClose }: Props) {
  const [eventId, setEventId] = useState(awaitedEvents[0] ?? '');
  const [data, setData] = useState('');
  const [isForAll, setIsForAll] = useState(false);
  const one = useChange('notifyWorkflowRun');
  const all = useChange('notifyEvent');
  const change = isForAll ? all : one;
  const waiters = useCall('listWaiters', { path: { eventId } }, { isEnabled: eventId !== '' });
  const notifiedCount = all.data?.length ?? (one.data?.waiter ? 1 : 0);

  const notify = (): void => {
    if (isForAll) all.mutate({ path: { eventId }, body: data });
    else one.mutate({ path: { workflowRunId: runId, eventId }, body: data });
  };

  return (
    <Dialog
      title="Send an event"
      onClose={onClose}
      actions={
        !change.isSuccess && (
          <Button kind="main" disabled={eventId === '' || change.isPending} onClick={notify}>
            Send
          </Button>
        )
      }
    >
      <div className="flex flex-col gap-3">
        <TextField
          label="Event"
          value={eventId}
          onChange={(event) => setEventId(event.target.value)}
          hint={
            awaitedEvents.length > 0
              ? `This run waits for ${awaitedEvents.join(', ')}.`
              : 'This run is not waiting for an event yet. If it waits for this event later, it continues at once.'
          }
        />
        <TextArea
          label="Data"
          value={data}
          onChange={(event) => setData(event.target.value)}
          placeholder={'{"by": "card"}'}
          hint="The data for the waiting step: JSON or text."
        />
        <Choice
          label="To"
          value={isForAll ? 'all' : 'one'}
          onChange={(event) => setIsForAll(event.target.value === 'all')}
          choices={[
            ['one', 'this run'],
            ['all', 'every run that waits for it'],
          ]}
          hint={
            eventId !== '' && waiters.data
              ? `${waiters.data.length.toLocaleString()} ${waiters.data.length === 1 ? 'run waits' : 'runs wait'} for it now.`
              : undefined
          }
        />
        {change.error && <Failure error={change.error} />}
        {change.isSuccess && (
          <p role="status" className="text-good">
            {notifiedCount > 0
              ? `Sent: ${notifiedCount.toLocaleString()} ${notifiedCount === 1 ? 'run continues' : 'runs continue'}.`
              : 'Saved until a run waits for it.'}
          </p>
        )}
      </div>
    </Dialog>
  );
}
