import { useState } from 'react';
import { Button } from './button.tsx';

const SHOWN_MS = 1_500;

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setIsCopied(true);
    setTimeout(() => setIsCopied(false), SHOWN_MS);
  };
  return (
    <Button kind="quiet" onClick={() => void copy()}>
      <span aria-live="polite">{isCopied ? 'Copied' : label}</span>
    </Button>
  );
}

/** Shows the first lines of a name or a URL in a table, with the full text as tooltip. */
export function Name({ children }: { children: string }) {
  return (
    <code title={children} className="line-clamp-3 min-w-36 font-mono text-[0.92em] break-all">
      {children}
    </code>
  );
}

/** An id or another short text in a monospace font. */
export function Code({ children }: { children: string }) {
  return <code className="inline-block min-w-[min(100%,8ch)] font-mono text-[0.92em] break-all">{children}</code>;
}
