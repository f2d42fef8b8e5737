/** The screen shown when another one could not be loaded or rendered. The rest of the page stays usable. */
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

/** Browsers may cache a failed script load, so only a reload helps. Reloading without a server would leave an empty page, hence the check. */
async function reload(): Promise<void> {
  const answer = await fetch('/healthz');
  if (!answer.ok) throw new Error(answer.statusText);
  window.location.reload();
}
