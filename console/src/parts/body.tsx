/** A body, shown formatted, raw or as bytes. */
import { useState } from 'react';
import { Button } from './button.tsx';
import { Copy } from './copy.tsx';

const VIEWS = ['pretty', 'raw', 'hex'] as const;
type View = (typeof VIEWS)[number];

/** Longer text is truncated: a browser would freeze with megabytes in one element. */
const SHOWN_CHARACTERS = 200_000;
const HEX_BYTES_MAX = 16_384;
const ROW_BYTES = 16;

interface Props {
  /** At most one of `text` and `base64` is set. */
  text?: string | undefined;
  base64?: string | undefined;
}

export function Body({ text, base64 }: Props) {
  const [view, setView] = useState<View>(base64 === undefined ? 'pretty' : 'hex');
  if (text === undefined && base64 === undefined) return <p className="text-quiet">No body.</p>;
  const whole = text ?? base64 ?? '';
  const shown = view === 'hex' ? hexOf(text, base64) : view === 'pretty' ? prettyOf(whole) : whole;
  return (
    <div className="flex flex-col gap-2">
      <div className="flex flex-wrap gap-1">
        {VIEWS.map((each) => (
          <Button
            key={each}
            kind={each === view ? 'plain' : 'quiet'}
            aria-pressed={each === view}
            onClick={() => setView(each)}
          >
            {each}
          </Button>
        ))}
        <Copy text={whole} />
      </div>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be scrollable by keyboard
        tabIndex={0}
        className="max-h-96 overflow-auto rounded-md border border-line bg-page p-3 font-mono text-xs break-words whitespace-pre-wrap"
      >
        {shown.slice(0, SHOWN_CHARACTERS)}
      </pre>
      {shown.length > SHOWN_CHARACTERS && (
        <p className="text-xs text-quiet">
          The first {SHOWN_CHARACTERS.toLocaleString()} characters are shown. Copy copies all of them.
        </p>
      )}
    </div>
  );
}

function prettyOf(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}

function hexOf(text: string | undefined, base64: string | undefined): string {
  const bytes =
    base64 === undefined ? new TextEncoder().encode(text) : Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const rows: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, HEX_BYTES_MAX); at += ROW_BYTES) {
    const row = [...bytes.subarray(at, at + ROW_BYTES)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const ascii = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('');
    rows.push(`${at.toString(16).padStart(8, '0')}  ${hex.padEnd(ROW_BYTES * 3 - 1)}  ${ascii}`);
  }
  if (bytes.length > HEX_BYTES_MAX) rows.push(`… ${(bytes.length - HEX_BYTES_MAX).toLocaleString()} more bytes`);
  return rows.join('\n');
}
