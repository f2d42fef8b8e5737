/** Replays a message, unchanged or with changes. */
import { type FormEvent, useId } from 'react';
import { useChange } from '../../api/client.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Choice, METHODS, TextArea, TextField } from '../../parts/field.tsx';
import { Failure } from '../../parts/states.tsx';
import { type Content, isRedacted } from './content.ts';
import { changesOf, formOf, type ReplayForm } from './replay-changes.ts';

interface Props {
  messageId: string;
  content: Content;
  onClose: () => void;
  onReplayed: (messageId: string) => void;
}

export function ReplayDialog({ messageId, content, onClose, onReplayed }: Props) {
  const like = formOf(content);
  const isBinary = content.body !== undefined && 'base64' in content.body;
  const formId = useId();
  const replay = useChange('replayMessage');
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const changes = changesOf(like, readForm(new FormData(event.currentTarget)));
    replay.mutate({ path: { messageId }, body: changes }, { onSuccess: (response) => onReplayed(response.messageId) });
  };
  return (
    <Dialog
      title="Replay"
      onClose={onClose}
      actions={
        <Button kind="main" type="submit" form={formId} disabled={replay.isPending}>
          Replay
        </Button>
      }
    >
      <form id={formId} onSubmit={submit} className="flex flex-col gap-3">
        <p className="text-quiet">Publishes the message again. It is due at once, and this one stays as it is.</p>
        <div className="grid gap-3 sm:grid-cols-[7rem_minmax(0,1fr)]">
          <Choice label="Method" name="method" choices={METHODS} defaultValue={like.method} />
          <TextField label="URL" name="destination" required defaultValue={like.destination} />
        </div>
        <TextArea
          label="Headers"
          name="headers"
          rows={4}
          hint="One per line, as Name: value"
          defaultValue={like.headers}
        />
        <TextArea
          label="Body"
          name="body"
          rows={10}
          defaultValue={like.body}
          {...(isBinary && { hint: 'Not text. It is sent unchanged if the field is empty.' })}
        />
        <div className="grid grid-cols-2 gap-3">
          <TextField label="Retries" name="retries" type="number" min={0} defaultValue={like.retries} />
          <TextField label="Queue" name="queueName" defaultValue={like.queueName} hint="Empty for no queue" />
        </div>
        <p className="text-xs text-quiet">
          Callbacks, labels, flow control and timeout are kept.
          {isRedacted(content) && ' Redacted values are empty here: enter them again.'}
        </p>
        {replay.error && <Failure error={replay.error} />}
      </form>
    </Dialog>
  );
}

function readForm(data: FormData): ReplayForm {
  const text = (name: string): string => String(data.get(name) ?? '');
  return {
    method: text('method'),
    destination: text('destination').trim(),
    // A form submits each line break as two characters, `\r\n`.
    headers: text('headers').replaceAll('\r\n', '\n'),
    body: text('body').replaceAll('\r\n', '\n'),
    retries: text('retries'),
    queueName: text('queueName').trim(),
  };
}
