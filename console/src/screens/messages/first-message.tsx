/** How to send the first message, which then arrives in this list. */
import { asCurl, headersOf, type Sending } from '../../api/as-code.ts';
import { useChange } from '../../api/client.ts';
import { environmentOf } from '../../api/session.ts';
import { Button } from '../../parts/button.tsx';
import { CodeBlock } from '../../parts/code-block.tsx';
import { Copy } from '../../parts/copy.tsx';
import { Empty, Failure } from '../../parts/states.tsx';

/** A server under development delivers to this machine, where an app of most frameworks listens here. */
const DEV_DESTINATION = 'http://localhost:3000/hello';
const DESTINATION = 'https://your-app.example.com/hello';

export function FirstMessage() {
  const { mode, token } = environmentOf();
  const isDev = mode === 'dev';
  const sending: Sending = {
    destination: isDev ? DEV_DESTINATION : DESTINATION,
    method: 'POST',
    headers: [['Content-Type', 'application/json']],
    body: { text: '{"hello": "world"}' },
    retries: 2,
  };
  const curl = asCurl(sending, location.origin);
  const line = token === undefined ? curl : `export QSTASH_TOKEN='${token}'\n${curl}`;
  const publish = useChange('publishBatch');
  return (
    <Empty title="No message was sent yet">
      <div className="flex max-w-full flex-col items-center gap-3">
        <p>Send the first one from a terminal. It shows up here at once, with each attempt to deliver it.</p>
        <CodeBlock label="curl">{line}</CodeBlock>
        <div className="flex flex-wrap justify-center gap-2">
          <Copy text={line} />
          {isDev && (
            <Button
              kind="main"
              disabled={publish.isPending}
              onClick={() =>
                publish.mutate({
                  body: [{ destination: sending.destination, headers: headersOf(sending), body: '{"hello": "world"}' }],
                })
              }
            >
              Send it from here
            </Button>
          )}
        </div>
        {isDev && (
          <p>When no app listens at that address, the message shows what went wrong and when it is tried again.</p>
        )}
        {publish.error && <Failure error={publish.error} />}
      </div>
    </Empty>
  );
}
