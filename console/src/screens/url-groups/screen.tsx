import { Link } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { isMasked } from '../../../../src/protocol/urls/masked-url.ts';
import { type ResponseOf, useCall, useChange } from '../../api/client.ts';
import { Action } from '../../parts/action.tsx';
import { Button } from '../../parts/button.tsx';
import { Code, Name } from '../../parts/copy.tsx';
import { TextField } from '../../parts/field.tsx';
import { Page, Panel } from '../../parts/panel.tsx';
import { Empty, Failure, QueryResult } from '../../parts/states.tsx';
import { Table } from '../../parts/table.tsx';
import { EndpointHealth } from './endpoint-health.tsx';

type Group = ResponseOf<'getUrlGroup'>;

export function Screen() {
  const groups = useCall('listUrlGroups');
  return (
    <Page title="URL groups" about="A message to a group is delivered to each of its endpoints.">
      <Panel title="Add an endpoint">
        <AddForm />
      </Panel>
      <QueryResult query={groups}>
        {(rows) =>
          rows.length === 0 ? (
            <Panel>
              <Empty title="No URL groups yet">
                The first endpoint creates a group. Publish to its name instead of a URL:{' '}
                <code>POST /v2/publish/my-group</code>
              </Empty>
            </Panel>
          ) : (
            rows.map((group) => <GroupPanel key={group.name} group={group} />)
          )
        }
      </QueryResult>
    </Page>
  );
}

function GroupPanel({ group: { name, endpoints, headers = {} } }: { group: Group }) {
  return (
    <Panel
      title={name}
      actions={
        <Action
          operation="deleteUrlGroup"
          input={{ path: { name } }}
          kind="danger"
          question={`Deletes the group ${name} with ${endpoints.length} endpoints. Messages already published are not affected.`}
        >
          Delete
        </Action>
      }
    >
      <Table
        label={`Endpoints of ${name}`}
        rows={endpoints}
        keyOf={({ url }) => url}
        columns={[
          {
            name: 'Endpoint',
            cell: ({ url, name: endpoint }) => (
              <>
                {endpoint !== undefined && <p className="wrap-anywhere">{endpoint}</p>}
                <Name>{url}</Name>
              </>
            ),
          },
          { name: 'Recent attempts', cell: ({ url }) => <EndpointHealth url={url} /> },
          {
            name: '',
            className: 'text-right',
            cell: ({ url, ...rest }) => (
              <span className="inline-flex items-center gap-2">
                <Link
                  to="/messages"
                  search={isMasked(url) ? { host: new URL(url).host } : { url }}
                  className="text-accent hover:underline"
                >
                  Messages
                </Link>
                <Action
                  operation="removeUrlGroupEndpoints"
                  input={{ path: { name }, body: { endpoints: [{ url, ...rest }] } }}
                  question={`Removes ${url} from ${name}.`}
                  kind="danger"
                >
                  Remove
                </Action>
              </span>
            ),
          },
        ]}
      />
      {Object.keys(headers).length > 0 && (
        <p className="mt-6 text-quiet">
          Default headers:{' '}
          <Code>
            {Object.entries(headers)
              .map(([header, values]) => `${header}: ${values.join(', ')}`)
              .join('; ')}
          </Code>
        </p>
      )}
    </Panel>
  );
}

function AddForm() {
  const [group, setGroup] = useState('');
  const [url, setUrl] = useState('');
  const add = useChange('addUrlGroupEndpoints');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    add.mutate({ path: { name: group }, body: { endpoints: [{ url }] } }, { onSuccess: () => setUrl('') });
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      <div className="grid items-end gap-3 sm:grid-cols-[12rem_minmax(0,1fr)_auto]">
        <TextField label="Group" required value={group} onChange={({ target }) => setGroup(target.value)} />
        <TextField
          label="URL"
          type="url"
          required
          placeholder="https://example.com/hook"
          value={url}
          onChange={({ target }) => setUrl(target.value)}
        />
        <Button kind="main" type="submit" disabled={add.isPending}>
          Add
        </Button>
      </div>
      {add.error && <Failure error={add.error} />}
    </form>
  );
}
