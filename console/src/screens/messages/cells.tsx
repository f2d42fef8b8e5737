/** Cells that several lists of messages share. */
import { Link } from '@tanstack/react-router';

export function MessageLink({ id, children }: { id: string; children: React.ReactNode }) {
  return (
    <Link
      to="/messages/$messageId"
      params={{ messageId: id }}
      className="block min-w-0 truncate hover:underline max-md:line-clamp-2 max-md:break-all max-md:whitespace-normal"
    >
      {children}
    </Link>
  );
}

export function Target({ method, url }: { method: string; url: string }) {
  return (
    <bdi title={url}>
      {method !== 'POST' && <span className="text-quiet">{method} </span>}
      {url}
    </bdi>
  );
}

/** Expands the details below a row. */
export function ExpandButton({ isOpen, toggle }: { isOpen: boolean; toggle: () => void }) {
  return (
    <button
      type="button"
      aria-expanded={isOpen}
      aria-label="Details"
      onClick={toggle}
      className="size-6 shrink-0 rounded text-quiet hover:bg-page hover:text-text"
    >
      <span aria-hidden="true" className={`inline-block transition-transform ${isOpen ? 'rotate-90' : ''}`}>
        ›
      </span>
    </button>
  );
}
