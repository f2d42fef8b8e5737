import { type FormEvent, useState } from 'react';
import { setToken } from '../api/session.ts';
import { Button } from '../parts/button.tsx';
import { TextField } from '../parts/field.tsx';

/** Asks for a token. Whether it is valid shows with the first request: a refused one brings the page back here. */
export function Login({ wasRefused }: { wasRefused: boolean }) {
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
        {wasRefused && (
          <p role="alert" className="text-bad">
            The server does not know this token. It may have been revoked.
          </p>
        )}
        <TextField
          label="Token of the project"
          type="password"
          autoComplete="off"
          autoFocus
          required
          value={text}
          onChange={(event) => setText(event.target.value)}
          hint={
            <>
              The operator makes one with <code>waypost tokens create</code>. It stays in this tab, until the tab is
              closed.
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
