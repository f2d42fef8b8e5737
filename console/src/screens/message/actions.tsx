/** The buttons of a message: retry, publish again, cancel. */
import { useState } from 'react';
import { useChange } from '../../api/client.ts';
import { Action } from '../../parts/action.tsx';
import { Button } from '../../parts/button.tsx';
import { Failure } from '../../parts/states.tsx';
import { RetryDialog } from '../dlq/retry-dialog.tsx';
import { type Content, isRedacted } from './content.ts';
import { PublishAgain } from './publish-again.tsx';
import { useShowRepeated } from './repeat-notice.tsx';

interface Props {
  messageId: string;
  content: Content;
  isFinished: boolean;
  /** Whether it is waiting for its due time. */
  isDelayed: boolean;
  /** Set while it is in the DLQ. */
  dlqId: string | undefined;
}

export function Actions({ messageId, content, isFinished, isDelayed, dlqId }: Props) {
  const [open, setOpen] = useState<'publish' | 'retry'>();
  const cancel = useChange('cancelMessage');
  const retry = useChange('retryDlqMessage');
  const show = useShowRepeated(messageId);
  const error = cancel.error ?? retry.error;
  const obstacle = republishObstacle(content);
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
      {obstacle === undefined ? (
        <Button onClick={() => setOpen('publish')}>Publish again</Button>
      ) : (
        <p className="max-w-80 self-center text-xs text-quiet">{obstacle}</p>
      )}
      {!isFinished && (
        <Button kind="danger" disabled={cancel.isPending} onClick={() => cancel.mutate({ path: { messageId } })}>
          Cancel message
        </Button>
      )}
      {error && <Failure error={error} />}
      {open === 'publish' && <PublishAgain content={content} onClose={() => setOpen(undefined)} onSent={show} />}
      {open === 'retry' && dlqId !== undefined && (
        <RetryDialog dlqId={dlqId} content={content} onClose={() => setOpen(undefined)} onRetried={show} />
      )}
    </>
  );
}

function republishObstacle(content: Content): string | undefined {
  if (isRedacted(content)) return 'This message cannot be published again from here, because part of it is redacted.';
  if (content.body !== undefined && 'base64' in content.body)
    return 'This message cannot be published again from here, because its body is binary. Copy it as curl instead.';
  return undefined;
}
