/** Shown for a screen that could not be loaded or drawn. The rest of the page stays usable. */
import { useState } from 'react';
import { Page } from '../parts/panel.tsx';
import { Failure } from '../parts/states.tsx';

export function ScreenFailed({ error }: { error: unknown }) {
  const [isAway, setIsAway] = useState(false);
  const reason = error instanceof Error ? error.message : String(error);
  const message = isAway ? 'The server cannot be reached.' : `This screen could not be loaded: ${reason}`;
  return (
    <Page title="Screen not loaded">
      <Failure error={new Error(message)} retry={() => void reload().catch(() => setIsAway(true))} />
    </Page>
  );
}

/** A browser may remember that a script could not be loaded, so only a reload helps; without a server that would end the page. */
async function reload(): Promise<void> {
  const answer = await fetch('/healthz');
  if (!answer.ok) throw new Error(answer.statusText);
  window.location.reload();
}
