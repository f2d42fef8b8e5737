import { type FormEvent, useState } from 'react';
import { setToken } from '../api/session.ts';
import { Button } from '../parts/button.tsx';
import { TextField } from '../parts/field.tsx';

/**
 * Asks for a token. The first request shows whether the token is valid. If the token is rejected, this form is shown
 * again.
 */
export function LoginForm({ wasRejected }: { wasRejected: boolean }) {
  const [text, setText] = useState('');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const trimmed = text.trim();
    if (trimmed !== '') setToken(trimmed);
  };
  return (
    <main className="mx-auto flex min-h-dvh max-w-md flex-col justify-center gap-6 p-4">
      <h1 className="text-xl font-semibold">Waypost</h1>
      <form onSubmit={submit} className="flex flex-col gap-4 rounded-lg border border-line bg-panel p-5">
        {wasRejected && (
          <p role="alert" className="text-bad">
            The server rejected this token. It may have been revoked.
          </p>
        )}
        <TextField
          label="Project token"
          type="password"
          autoComplete="off"
          autoFocus
          required
          value={text}
          onChange={(event) => setText(event.target.value)}
          hint={
            <>
              Create one with <code>waypost tokens create</code> on the server. The token is kept until you close this
              tab.
            </>
          }
        />
        <Button kind="main" type="submit" className="self-start">
          Open
        </Button>
      </form>
    </main>
  );
}
