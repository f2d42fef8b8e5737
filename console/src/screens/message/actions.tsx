/** The buttons of a message: retry, replay, cancel. */
import { useState } from 'react';
import { useChange } from '../../api/client.ts';
import { Action } from '../../parts/action.tsx';
import { Button } from '../../parts/button.tsx';
import { Failure } from '../../parts/states.tsx';
import { RetryDialog } from '../dlq/retry-dialog.tsx';
import type { Content } from './content.ts';
import { useShowRepeated } from './repeat-notice.tsx';
import { ReplayDialog } from './replay-dialog.tsx';

interface Props {
  messageId: string;
  content: Content;
  isFinished: boolean;
  /** Whether the message is waiting for its due time. */
  isDelayed: boolean;
  /** Set while the message is in the DLQ. */
  dlqId: string | undefined;
}

export function Actions({ messageId, content, isFinished, isDelayed, dlqId }: Props) {
  const [open, setOpen] = useState<'replay' | 'retry'>();
  const cancel = useChange('cancelMessage');
  const retry = useChange('retryDlqMessage');
  const show = useShowRepeated(messageId);
  const error = cancel.error ?? retry.error;
  return (
    <>
      {dlqId !== undefined && (
        <>
          <Button
            kind="main"
            disabled={retry.isPending}
            onClick={() => retry.mutate({ path: { dlqId } }, { onSuccess: (response) => show(response.messageId) })}
          >
            Retry now
          </Button>
          <Button onClick={() => setOpen('retry')}>Retry with changes</Button>
        </>
      )}
      {isDelayed && (
        <Action operation="retryMessage" input={{ path: { messageId } }} kind="main">
          Attempt now
        </Action>
      )}
      <Button onClick={() => setOpen('replay')}>Replay</Button>
      {!isFinished && (
        <Button kind="danger" disabled={cancel.isPending} onClick={() => cancel.mutate({ path: { messageId } })}>
          Cancel message
        </Button>
      )}
      {error && <Failure error={error} />}
      {open === 'replay' && (
        <ReplayDialog messageId={messageId} content={content} onClose={() => setOpen(undefined)} onReplayed={show} />
      )}
      {open === 'retry' && dlqId !== undefined && (
        <RetryDialog dlqId={dlqId} content={content} onClose={() => setOpen(undefined)} onRetried={show} />
      )}
    </>
  );
}
