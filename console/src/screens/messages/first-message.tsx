/** The empty state of the message list, which shows how to send the first message. */
import { asCurl, headersOf, type RequestSpec } from '../../api/as-code.ts';
import { useChange } from '../../api/client.ts';
import { environmentOf } from '../../api/session.ts';
import { Button } from '../../parts/button.tsx';
import { CodeBlock } from '../../parts/code-block.tsx';
import { Copy } from '../../parts/copy.tsx';
import { Empty, Failure } from '../../parts/states.tsx';

/** The development server delivers to this machine; most frameworks listen on this port. */
const DEV_DESTINATION = 'http://localhost:3000/hello';
const DESTINATION = 'https://your-app.example.com/hello';

export function FirstMessage() {
  const { mode, token } = environmentOf();
  const isDev = mode === 'dev';
  const request: RequestSpec = {
    destination: isDev ? DEV_DESTINATION : DESTINATION,
    method: 'POST',
    headers: [['Content-Type', 'application/json']],
    body: { text: '{"hello": "world"}' },
    retries: 2,
  };
  const curl = asCurl(request, location.origin);
  const line = token === undefined ? curl : `export QSTASH_TOKEN='${token}'\n${curl}`;
  const publish = useChange('publishBatch');
  return (
    <Empty title="No messages yet">
      <div className="flex max-w-full flex-col items-center gap-3">
        <p>Send your first message from a terminal. It appears here at once, with each delivery attempt.</p>
        <CodeBlock label="curl">{line}</CodeBlock>
        <div className="flex flex-wrap justify-center gap-2">
          <Copy text={line} />
          {isDev && (
            <Button
              kind="main"
              disabled={publish.isPending}
              onClick={() =>
                publish.mutate({
                  body: [{ destination: request.destination, headers: headersOf(request), body: '{"hello": "world"}' }],
                })
              }
            >
              Send it now
            </Button>
          )}
        </div>
        {isDev && (
          <p>If no app is listening at that address, the message shows the error and the time of the next attempt.</p>
        )}
        {publish.error && <Failure error={publish.error} />}
      </div>
    </Empty>
  );
}
