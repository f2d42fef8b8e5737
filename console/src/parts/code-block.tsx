/** A block of code to read and copy. */
export function CodeBlock({ label, children }: { label: string; children: string }) {
  return (
    <section
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be scrollable by keyboard
      tabIndex={0}
      className="max-h-96 max-w-full overflow-auto rounded-md border border-line bg-page p-3 text-left"
    >
      <pre className="font-mono text-xs text-text">{children}</pre>
    </section>
  );
}
