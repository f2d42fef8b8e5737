import { isMasked } from '../../../../src/protocol/urls/masked-url.ts';
import { useCall } from '../../api/client.ts';

/** The number of recent attempts that are counted. */
const ATTEMPTS_COUNTED = 50;
const REFRESH_MS = 15_000;

/** How many of the latest attempts at a URL succeeded. */
export function EndpointHealth({ url }: { url: string }) {
  const { data } = useCall(
    'listEvents',
    { query: { ...filterFor(url), state: ['DELIVERED', 'ERROR', 'FAILED'], count: ATTEMPTS_COUNTED } },
    { refreshMs: REFRESH_MS },
  );
  if (data === undefined) return <span className="text-quiet">…</span>;
  const delivered = data.events.filter(({ state }) => state === 'DELIVERED').length;
  if (data.events.length === 0) return <span className="text-quiet">no attempts</span>;
  const tone = delivered === data.events.length ? 'text-good' : delivered === 0 ? 'text-bad' : 'text-warn';
  return (
    <span className={`whitespace-nowrap ${tone}`}>
      {delivered} of {data.events.length} delivered
    </span>
  );
}

/** Filtering by a URL with a password would need the password, which is masked. */
function filterFor(url: string): { url: string[] } | { host: string[]; path: string[] } {
  if (!isMasked(url)) return { url: [url] };
  const { host, pathname } = new URL(url);
  return { host: [host], path: [pathname] };
}
