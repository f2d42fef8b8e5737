/** The tokens of this project. A full token can create and revoke tokens. */
import { type FormEvent, useState } from 'react';
import { type ResponseOf, useCall, useChange } from '../../api/client.ts';
import { Action } from '../../parts/action.tsx';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Code, Copy } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Choice, TextField } from '../../parts/field.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Failure, QueryResult } from '../../parts/states.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';

type Token = ResponseOf<'listTokens'>['tokens'][number];

const SCOPES = [
  ['full', 'full: everything'],
  ['publish-only', 'publish-only: publish, enqueue, batch'],
  ['read-only', 'read-only: read everything but keys'],
] as const;

const COLUMNS: readonly Column<Token>[] = [
  {
    name: 'Token',
    cell: ({ tokenId, name, isOwn }) => (
      <span className="inline-flex flex-wrap items-center gap-2">
        {name ?? <Code>{tokenId}</Code>}
        {isOwn && <Badge tone="busy">this one</Badge>}
      </span>
    ),
  },
  { name: 'Scope', cell: ({ scope }) => scope },
  { name: 'Created', cell: ({ createdAt }) => <Time atMs={createdAt} /> },
  { name: 'Last used', cell: ({ lastUsedAt }) => (lastUsedAt === undefined ? 'never' : <Time atMs={lastUsedAt} />) },
  {
    name: '',
    className: 'text-right',
    cell: ({ tokenId, name, isOwn }) => (
      <Action
        operation="revokeToken"
        input={{ path: { tokenId } }}
        kind="danger"
        question={`Revokes ${name ?? tokenId}. Requests with this token are rejected at once.${isOwn ? ' You will be logged out.' : ''}`}
      >
        Revoke
      </Action>
    ),
  },
];

export function Tokens() {
  const tokens = useCall('listTokens', {}, { refreshMs: 0 });
  return (
    <Panel title="Tokens of this project">
      <div className="flex flex-col gap-8">
        <NewToken />
        <QueryResult query={tokens}>
          {({ tokens: rows }) => (
            <Table label="Tokens" columns={COLUMNS} rows={rows} keyOf={({ tokenId }) => tokenId} />
          )}
        </QueryResult>
      </div>
    </Panel>
  );
}

function NewToken() {
  const [name, setName] = useState('');
  const [scope, setScope] = useState<Token['scope']>('publish-only');
  const create = useChange('createToken');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    create.mutate({ body: { scope, ...(name !== '' && { name }) } }, { onSuccess: () => setName('') });
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      <div className="grid items-end gap-3 sm:grid-cols-[minmax(0,1fr)_minmax(0,1fr)_auto]">
        <TextField
          label="New token name"
          placeholder="billing app"
          value={name}
          onChange={({ target }) => setName(target.value)}
        />
        <Choice
          label="Scope"
          choices={SCOPES}
          value={scope}
          onChange={({ target }) => setScope(target.value as Token['scope'])}
        />
        <Button kind="main" type="submit" disabled={create.isPending}>
          Create
        </Button>
      </div>
      {create.error && <Failure error={create.error} />}
      {create.data && (
        <Dialog title="New token" onClose={create.reset}>
          <p className="mb-3">Copy the token now: the server stores only its hash.</p>
          <p className="flex flex-wrap items-center gap-2">
            <Code>{create.data.token}</Code>
            <Copy text={create.data.token} />
          </p>
        </Dialog>
      )}
    </form>
  );
}
