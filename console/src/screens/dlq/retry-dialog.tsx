/** Retries a DLQ entry with other settings. */
import { type FormEvent, useId } from 'react';
import { useChange } from '../../api/client.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Choice, METHODS, TextField } from '../../parts/field.tsx';
import { Failure } from '../../parts/states.tsx';
import type { Content } from '../message/content.ts';

interface Props {
  dlqId: string;
  content: Content;
  onClose: () => void;
  onRetried: (messageId: string) => void;
}

/**
 * For each input: the header that overrides the stored value, the label, the type of the input, and the stored value. An
 * empty input overrides nothing.
 */
const FIELDS = [
  ['Upstash-Retries', 'Retries', 'number', ({ maxRetries }: Content) => String(maxRetries)],
  ['Upstash-Retry-Delay', 'Retry delay (expression, ms)', 'text', (c: Content) => c.retryDelayExpression ?? 'default'],
  ['Upstash-Timeout', 'Timeout', 'text', (c: Content) => (c.timeout === undefined ? 'default' : `${c.timeout}ms`)],
  ['Upstash-Delay', 'Delay', 'text', () => 'none'],
  ['Upstash-Label', 'Label', 'text', ({ labels }: Content) => labels?.join(',') ?? 'none'],
  ['Upstash-Flow-Control-Key', 'Flow-control key', 'text', ({ flowControlKey }: Content) => flowControlKey ?? 'none'],
  ['Upstash-Flow-Control-Value', 'Flow-control value', 'text', () => 'parallelism=5'],
  ['Upstash-Callback', 'Callback', 'url', ({ callback }: Content) => callback ?? 'none'],
  ['Upstash-Failure-Callback', 'Failure callback', 'url', ({ failureCallback }: Content) => failureCallback ?? 'none'],
] as const;

export function RetryDialog({ dlqId, content, onClose, onRetried }: Props) {
  const formId = useId();
  const retry = useChange('retryDlqMessage');
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const given = [...new FormData(event.currentTarget)].map(([name, value]) => [name, String(value).trim()] as const);
    const changed = given.filter(
      ([name, value]) => value !== '' && !(name === 'Upstash-Method' && value === content.method),
    );
    retry.mutate(
      { path: { dlqId }, headers: Object.fromEntries(changed) },
      { onSuccess: ({ messageId }) => onRetried(messageId) },
    );
  };
  return (
    <Dialog
      title="Retry with changes"
      onClose={onClose}
      actions={
        <Button kind="main" type="submit" form={formId} disabled={retry.isPending}>
          Retry
        </Button>
      }
    >
      <form id={formId} onSubmit={submit} className="flex flex-col gap-3">
        <p className="text-quiet">
          Sends a new message to the same URL with the same body, and removes this one from the DLQ. Empty fields keep
          their stored values. To change the URL, the headers or the body, use Replay.
        </p>
        <div className="grid gap-3 sm:grid-cols-2">
          <Choice label="Method" name="Upstash-Method" choices={METHODS} defaultValue={content.method} />
          {FIELDS.map(([name, label, type, current]) => (
            <TextField key={name} name={name} label={label} type={type} min={0} placeholder={current(content)} />
          ))}
        </div>
        {retry.error && <Failure error={retry.error} />}
      </form>
    </Dialog>
  );
}
