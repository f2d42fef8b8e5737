/** A native modal dialog: it traps the focus and closes on Escape. */
import { useEffect, useId, useRef } from 'react';
import { Button } from './button.tsx';

interface Props {
  title: string;
  onClose: () => void;
  children: React.ReactNode;
  /** Buttons next to the button that closes the dialog. */
  actions?: React.ReactNode;
}

/** The dialog is open while it is rendered. */
export function Dialog({ title, onClose, children, actions }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={titleId}
      onClose={onClose}
      className="m-auto max-h-[90dvh] w-[min(44rem,calc(100vw-2rem))] flex-col overflow-hidden rounded-lg border border-line bg-panel text-left wrap-anywhere whitespace-normal text-text open:flex"
    >
      <h2 id={titleId} className="border-b border-line px-4 py-3 font-semibold">
        {title}
      </h2>
      <div className="min-h-0 overflow-auto p-4">{children}</div>
      <footer className="flex flex-wrap justify-end gap-2 border-t border-line px-4 py-3">
        <Button onClick={() => dialog.current?.close()}>Close</Button>
        {actions}
      </footer>
    </dialog>
  );
}
