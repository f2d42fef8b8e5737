/** Publishes an edited copy of a message. */
import { type FormEvent, useId, useState } from 'react';
import { headersOf, type RequestSpec } from '../../api/as-code.ts';
import { useChange } from '../../api/client.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Choice, TextArea, TextField } from '../../parts/field.tsx';
import { Failure } from '../../parts/states.tsx';
import { type Content, sendingOf } from './content.ts';

export const METHODS = ['POST', 'GET', 'PUT', 'PATCH', 'DELETE'].map((method) => [method, method] as const);

interface Props {
  content: Content;
  onClose: () => void;
  onSent: (messageId: string) => void;
}

export function PublishAgain({ content, onClose, onSent }: Props) {
  const like = sendingOf(content);
  const [wrong, setWrong] = useState<string>();
  const formId = useId();
  // A batch item carries destinations and headers with any characters, which a browser would change in a URL.
  const publish = useChange('publishBatch');
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const { sending, body } = readForm(new FormData(event.currentTarget), like);
    const item = { destination: sending.destination, headers: headersOf(sending), body, queue: sending.queueName };
    setWrong(undefined);
    publish.mutate(
      { body: [item] },
      {
        onSuccess: ([response]) => {
          const [first] = [response].flat();
          if (first && 'messageId' in first) onSent(first.messageId);
          else setWrong(first?.error ?? 'The server did not accept the message.');
        },
      },
    );
  };
  return (
    <Dialog
      title="Publish again"
      onClose={onClose}
      actions={
        <Button kind="main" type="submit" form={formId} disabled={publish.isPending}>
          Publish
        </Button>
      }
    >
      <form id={formId} onSubmit={submit} className="flex flex-col gap-3">
        <div className="grid gap-3 sm:grid-cols-[7rem_minmax(0,1fr)]">
          <Choice label="Method" name="method" choices={METHODS} defaultValue={like.method} />
          <TextField label="URL" name="destination" required defaultValue={like.destination} />
        </div>
        <TextArea
          label="Headers"
          name="headers"
          rows={4}
          hint="One per line, as Name: value"
          defaultValue={like.headers.map(([name, value]) => `${name}: ${value}`).join('\n')}
        />
        <TextArea
          label="Body"
          name="body"
          rows={10}
          defaultValue={like.body && 'text' in like.body ? like.body.text : ''}
        />
        <div className="grid grid-cols-2 gap-3">
          <TextField label="Retries" name="retries" type="number" min={0} defaultValue={like.retries} />
          <TextField label="Queue" name="queueName" defaultValue={like.queueName} hint="Empty for no queue" />
        </div>
        <p className="text-xs text-quiet">Callbacks, labels, flow control and timeout are copied unchanged.</p>
        {wrong !== undefined && <Failure error={new Error(wrong)} />}
        {publish.error && <Failure error={publish.error} />}
      </form>
    </Dialog>
  );
}

function readForm(form: FormData, like: RequestSpec): { sending: RequestSpec; body: string } {
  const text = (name: string): string => String(form.get(name) ?? '');
  const sending: RequestSpec = {
    ...like,
    destination: text('destination').trim(),
    method: text('method'),
    headers: headersIn(text('headers')),
    retries: text('retries') === '' ? undefined : Number(text('retries')),
    queueName: text('queueName').trim() || undefined,
  };
  // A form submits each line break as two characters.
  return { sending, body: text('body').replaceAll('\r\n', '\n') };
}

/** Parses lines of `Name: value`. */
function headersIn(text: string): [name: string, value: string][] {
  return text.split('\n').flatMap((line) => {
    const colon = line.indexOf(':');
    const name = (colon < 0 ? line : line.slice(0, colon)).trim();
    return name === '' ? [] : [[name, colon < 0 ? '' : line.slice(colon + 1).trim()]];
  });
}
