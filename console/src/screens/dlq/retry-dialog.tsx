/** Retries an entry of the DLQ with other settings than it failed with. */
import { type FormEvent, useId } from 'react';
import { useChange } from '../../api/client.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Choice, TextField } from '../../parts/field.tsx';
import { Failure } from '../../parts/states.tsx';
import type { Content } from '../message/content.ts';
import { METHODS } from '../message/publish-again.tsx';

interface Props {
  dlqId: string;
  content: Content;
  onClose: () => void;
  onRetried: (messageId: string) => void;
}

/** Each field by the header that overrides what is stored; a field without a value overrides nothing. */
const FIELDS = [
  ['Upstash-Retries', 'Retries', 'number', ({ maxRetries }: Content) => String(maxRetries)],
  [
    'Upstash-Retry-Delay',
    'Retry delay in ms, an expression',
    'text',
    (c: Content) => c.retryDelayExpression ?? 'by default',
  ],
  ['Upstash-Timeout', 'Timeout', 'text', (c: Content) => (c.timeout === undefined ? 'by default' : `${c.timeout}ms`)],
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
          A new message goes to the same URL with the same body, and leaves the DLQ. What is left empty stays as it was.
          To change the URL, the headers or the body, publish it again instead.
        </p>
        <div className="grid gap-3 sm:grid-cols-2">
          <Choice label="Method" name="Upstash-Method" choices={METHODS} defaultValue={content.method} />
          {FIELDS.map(([name, label, type, now]) => (
            <TextField key={name} name={name} label={label} type={type} min={0} placeholder={now(content)} />
          ))}
        </div>
        {retry.error && <Failure error={retry.error} />}
      </form>
    </Dialog>
  );
}
