import { type ResponseOf, useCall } from '../../api/client.ts';
import { environmentOf } from '../../api/session.ts';
import { Action } from '../../parts/action.tsx';
import { Code, Copy } from '../../parts/copy.tsx';
import { Facts, Page, Panel } from '../../parts/panel.tsx';
import { QueryResult } from '../../parts/states.tsx';
import { SignatureCheck } from './signature-check.tsx';
import { Tokens } from './tokens.tsx';

export function Screen() {
  const session = useCall('getSession', {}, { refreshMs: 0 });
  const { docsUrl, version } = environmentOf();
  return (
    <Page title="Settings">
      <QueryResult query={session}>
        {({ project, scope, tokenName }) => (
          <>
            <Panel title="This project">
              <Facts
                facts={[
                  ['Project', project],
                  ['Token', tokenName],
                  ['Token scope', scope],
                  ['Server', `${location.origin}, Waypost ${version}`],
                  [
                    'API',
                    <a key="docs" className="text-accent underline" href="/docs">
                      API documentation
                    </a>,
                  ],
                  [
                    'Documentation',
                    docsUrl && (
                      <a key="site" className="text-accent underline" href={docsUrl} target="_blank" rel="noreferrer">
                        guides and reference
                      </a>
                    ),
                  ],
                ]}
              />
            </Panel>
            {scope === 'full' ? (
              <>
                <SigningKeys />
                <SignatureCheck />
                {environmentOf().mode === 'serve' && <Tokens />}
              </>
            ) : (
              <Panel title="Tokens and signing keys">
                <p className="text-quiet">
                  A full token is required: anyone with the signing keys can sign as this server.
                </p>
              </Panel>
            )}
            {scope !== 'publish-only' && <Limits />}
          </>
        )}
      </QueryResult>
    </Page>
  );
}

function SigningKeys() {
  const keys = useCall('getSigningKeys', {}, { refreshMs: 0 });
  return (
    <Panel
      title="Signing keys"
      actions={
        <Action
          operation="rotateSigningKeys"
          input={{}}
          kind="danger"
          question="The next key becomes the current one, and a new next key is created. Deliveries are signed with it at once, so give your apps both keys first."
        >
          Rotate
        </Action>
      }
    >
      <QueryResult query={keys}>{(pair) => <KeyPair pair={pair} />}</QueryResult>
    </Panel>
  );
}

function KeyPair({ pair: { current, next } }: { pair: ResponseOf<'getSigningKeys'> }) {
  const shown = (key: string, name: string) => (
    <span className="inline-flex flex-wrap items-center gap-2">
      <Code>{`${key.slice(0, 8)}…`}</Code>
      <Copy text={`${name}=${key}`} label="Copy for .env" />
    </span>
  );
  return (
    <Facts
      facts={[
        ['Current key', shown(current, 'QSTASH_CURRENT_SIGNING_KEY')],
        ['Next key', shown(next, 'QSTASH_NEXT_SIGNING_KEY')],
      ]}
    />
  );
}

function Limits() {
  const parallelism = useCall('getGlobalParallelism');
  return (
    <Panel title="Limits">
      <QueryResult query={parallelism}>
        {({ parallelismMax, parallelismCount }) => (
          <Facts
            facts={[
              ['Attempts in flight', parallelismCount],
              ['Maximum in flight', parallelismMax === 0 ? 'no limit' : parallelismMax],
            ]}
          />
        )}
      </QueryResult>
    </Panel>
  );
}
