import { type FormEvent, useState } from 'react';
import { useChange } from '../../api/client.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { TextArea, TextField } from '../../parts/field.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Failure } from '../../parts/states.tsx';

/** Verifies a signature, and shows which of its claims are invalid. */
export function SignatureCheck() {
  const [signature, setSignature] = useState('');
  const [url, setUrl] = useState('');
  const [body, setBody] = useState('');
  const check = useChange('verifySignature');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    check.mutate({ body: { signature, body, ...(url !== '' && { url }) } });
  };
  return (
    <Panel title="Verify a signature">
      <form onSubmit={submit} className="flex flex-col gap-3">
        <TextArea
          label="Upstash-Signature header"
          required
          value={signature}
          onChange={({ target }) => setSignature(target.value)}
        />
        <TextField
          label="Called URL (empty: not checked)"
          value={url}
          onChange={({ target }) => setUrl(target.value)}
        />
        <TextArea label="Raw body" value={body} onChange={({ target }) => setBody(target.value)} />
        <Button type="submit" className="self-start" disabled={check.isPending}>
          Verify
        </Button>
        <div aria-live="polite">
          {check.error && <Failure error={check.error} />}
          {check.data?.isValid === true && <Badge tone="good">valid</Badge>}
          {check.data?.failed?.map(({ claim, reason }) => (
            <p key={claim} className="flex flex-wrap items-center gap-2 py-1">
              <Badge tone="bad">{claim}</Badge>
              {reason}
            </p>
          ))}
        </div>
      </form>
    </Panel>
  );
}
