/** Publishes an edited copy of a message. */
import { type FormEvent, useId, useState } from 'react';
import { headersOf, type RequestSpec } from '../../api/as-code.ts';
import { useChange } from '../../api/client.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Choice, TextArea, TextField } from '../../parts/field.tsx';
import { Failure } from '../../parts/states.tsx';
import { type Content, requestOf } from './content.ts';

export const METHODS = ['POST', 'GET', 'PUT', 'PATCH', 'DELETE'].map((method) => [method, method] as const);

interface Props {
  content: Content;
  onClose: () => void;
  onSent: (messageId: string) => void;
}

export function PublishAgain({ content, onClose, onSent }: Props) {
  const original = requestOf(content);
  const [rejection, setRejection] = useState<string>();
  const formId = useId();
  // A batch item carries destinations and headers with any characters, which a browser would change in a URL.
  const publish = useChange('publishBatch');
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const { request, body } = readForm(new FormData(event.currentTarget), original);
    const item = { destination: request.destination, headers: headersOf(request), body, queue: request.queueName };
    setRejection(undefined);
    publish.mutate(
      { body: [item] },
      {
        onSuccess: ([response]) => {
          const [first] = [response].flat();
          if (first && 'messageId' in first) onSent(first.messageId);
          else setRejection(first?.error ?? 'The server did not accept the message.');
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
          <Choice label="Method" name="method" choices={METHODS} defaultValue={original.method} />
          <TextField label="URL" name="destination" required defaultValue={original.destination} />
        </div>
        <TextArea
          label="Headers"
          name="headers"
          rows={4}
          hint="One per line, as Name: value"
          defaultValue={original.headers.map(([name, value]) => `${name}: ${value}`).join('\n')}
        />
        <TextArea
          label="Body"
          name="body"
          rows={10}
          defaultValue={original.body && 'text' in original.body ? original.body.text : ''}
        />
        <div className="grid grid-cols-2 gap-3">
          <TextField label="Retries" name="retries" type="number" min={0} defaultValue={original.retries} />
          <TextField label="Queue" name="queueName" defaultValue={original.queueName} hint="Empty for no queue" />
        </div>
        <p className="text-xs text-quiet">Callbacks, labels, flow control and timeout are copied unchanged.</p>
        {rejection !== undefined && <Failure error={new Error(rejection)} />}
        {publish.error && <Failure error={publish.error} />}
      </form>
    </Dialog>
  );
}

function readForm(form: FormData, original: RequestSpec): { request: RequestSpec; body: string } {
  const text = (name: string): string => String(form.get(name) ?? '');
  const request: RequestSpec = {
    ...original,
    destination: text('destination').trim(),
    method: text('method'),
    headers: parseHeaders(text('headers')),
    retries: text('retries') === '' ? undefined : Number(text('retries')),
    queueName: text('queueName').trim() || undefined,
  };
  // A form submits each line break as two characters.
  return { request, body: text('body').replaceAll('\r\n', '\n') };
}

/** Parses lines of `Name: value`. */
function parseHeaders(text: string): [name: string, value: string][] {
  return text.split('\n').flatMap((line) => {
    const colon = line.indexOf(':');
    const name = (colon < 0 ? line : line.slice(0, colon)).trim();
    return name === '' ? [] : [[name, colon < 0 ? '' : line.slice(colon + 1).trim()]];
  });
}
