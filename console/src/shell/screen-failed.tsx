/** The screen that is shown if another screen could not be loaded or rendered. The rest of the page stays usable. */
import { useState } from 'react';
import { Page } from '../parts/panel.tsx';
import { Failure } from '../parts/states.tsx';

export function ScreenFailed({ error }: { error: unknown }) {
  const [isUnreachable, setIsUnreachable] = useState(false);
  const reason = error instanceof Error ? error.message : String(error);
  const message = isUnreachable ? 'The server cannot be reached.' : `This screen could not be loaded: ${reason}`;
  return (
    <Page title="Screen not loaded">
      <Failure error={new Error(message)} retry={() => void reload().catch(() => setIsUnreachable(true))} />
    </Page>
  );
}

/**
 * Browsers may cache a failed script load, so only a reload helps. The server is checked first, since a reload without a
 * server would leave an empty page.
 */
async function reload(): Promise<void> {
  const response = await fetch('/healthz');
  if (!response.ok) throw new Error(response.statusText);
  window.location.reload();
}
