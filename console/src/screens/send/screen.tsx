/** The request builder: a form whose request is sent from here or copied as a shell command or code. */
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { asClientCode, asCurl } from '../../api/as-code.ts';
import type { RequestError } from '../../api/client.ts';
import { Button } from '../../parts/button.tsx';
import { Copy } from '../../parts/copy.tsx';
import { Choice, METHODS, TextArea, TextField } from '../../parts/field.tsx';
import { Page, Panel } from '../../parts/panel.tsx';
import { Failure } from '../../parts/states.tsx';
import { EMPTY_FORM, EXAMPLE_EVENT, EXAMPLE_URL, FIELDS_OF, type Form, KINDS, type Kind, requestOf } from './form.ts';
import { sendNow } from './send-now.ts';

const LABELS: Partial<Record<keyof Form, [label: string, placeholder: string]>> = {
  queueName: ['Queue', 'invoices'],
  cron: ['Cron', 'CRON_TZ=Europe/Berlin 30 7 * * MON-FRI'],
  scheduleId: ['Schedule id', 'morning-report'],
  delay: ['Delay', '10m'],
  retries: ['Retries', '3'],
  timeoutS: ['Timeout (seconds)', '30'],
  deduplicationId: ['Deduplication id', 'order-42'],
  label: ['Labels', 'orders, eu'],
  callback: ['Callback', 'https://example.com/done'],
  failureCallback: ['Failure callback', 'https://example.com/failed'],
  flowControlKey: ['Flow-control key', 'crm'],
};

export function Screen() {
  const [form, setForm] = useState(EMPTY_FORM);
  const send = useMutation<unknown, RequestError, Form>({ mutationFn: (given) => sendNow(requestOf(given)) });
  const fieldOf = (name: keyof Form) => ({
    value: form[name],
    onChange: ({ target }: { target: { value: string } }) => setForm({ ...form, [name]: target.value }),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    send.mutate(form);
  };
  const isNotify = form.kind === 'notify';
  return (
    <Page title="Send" about="Build a request, then send it from here or copy it as code.">
      <div className="grid items-start gap-4 xl:grid-cols-2">
        <Panel title="Request">
          <form onSubmit={submit} className="flex flex-col gap-4">
            <Choice
              label="Action"
              choices={KINDS}
              value={form.kind}
              onChange={({ target }) => setForm({ ...form, kind: target.value as Kind })}
            />
            <TextField
              label={isNotify ? 'Event id' : 'Destination (URL or name of a URL group)'}
              required
              placeholder={isNotify ? EXAMPLE_EVENT : EXAMPLE_URL}
              {...fieldOf('destination')}
            />
            <div className="grid gap-3 sm:grid-cols-2">
              {FIELDS_OF[form.kind].map((name) =>
                name === 'method' ? (
                  <Choice key={name} label="Method" choices={METHODS} {...fieldOf(name)} />
                ) : (
                  <TextField
                    key={name}
                    label={LABELS[name]?.[0] ?? name}
                    placeholder={LABELS[name]?.[1]}
                    required={name === 'cron' || (name === 'queueName' && form.kind === 'enqueue')}
                    {...fieldOf(name)}
                  />
                ),
              )}
            </div>
            {FIELDS_OF[form.kind].includes('flowControlKey') && form.flowControlKey !== '' && (
              <div className="grid gap-3 sm:grid-cols-3">
                <TextField label="Parallelism" type="number" min="1" {...fieldOf('parallelism')} />
                <TextField label="Rate" type="number" min="1" {...fieldOf('rate')} />
                <TextField label="Period (seconds)" type="number" min="1" {...fieldOf('periodS')} />
              </div>
            )}
            {!isNotify && <TextArea label="Headers for the destination, one per line" {...fieldOf('headers')} />}
            <TextArea label="Body" {...fieldOf('body')} />
            <Button kind="main" type="submit" disabled={send.isPending} className="self-start">
              Send
            </Button>
          </form>
        </Panel>
        <div className="flex min-w-0 flex-col gap-4">
          {(send.error !== null || send.data !== undefined) && (
            <Panel title="Response">
              {send.error ? <Failure error={send.error} /> : <Source text={JSON.stringify(send.data, undefined, 2)} />}
            </Panel>
          )}
          <Panel title="curl" actions={<Copy text={asCurl(requestOf(form), location.origin)} />}>
            <Source text={asCurl(requestOf(form), location.origin)} />
          </Panel>
          <Panel
            title="TypeScript (official client)"
            actions={<Copy text={asClientCode(requestOf(form), location.origin)} />}
          >
            <Source text={asClientCode(requestOf(form), location.origin)} />
          </Panel>
        </div>
      </div>
    </Page>
  );
}

function Source({ text }: { text: string }) {
  return <pre className="font-mono text-xs break-words whitespace-pre-wrap">{text}</pre>;
}
