/** A button that changes data. It asks for confirmation if the change cannot be undone, and shows the server's error. */
import { useState } from 'react';
import { type Input, type OperationId, useChange } from '../api/client.ts';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { Failure } from './states.tsx';

interface Props<Id extends OperationId> {
  operation: Id;
  input: Input<Id>;
  /** The text of the confirmation. */
  question?: string;
  kind?: 'plain' | 'main' | 'danger';
  onDone?: () => void;
  children: string;
}

export function Action<Id extends OperationId>({
  operation,
  input,
  question,
  kind = 'plain',
  onDone,
  children,
}: Props<Id>) {
  const change = useChange(operation);
  const [isAsking, setIsAsking] = useState(false);
  const close = (): void => {
    setIsAsking(false);
    change.reset();
  };
  const act = (): void =>
    change.mutate(input, {
      onSuccess: () => {
        setIsAsking(false);
        onDone?.();
      },
    });
  const isShown = isAsking || change.error !== null;
  return (
    <>
      <Button kind={kind} disabled={change.isPending} onClick={question === undefined ? act : () => setIsAsking(true)}>
        {children}
      </Button>
      {isShown && (
        <Dialog
          title={children}
          onClose={close}
          actions={
            <Button kind={kind === 'plain' ? 'main' : kind} disabled={change.isPending} onClick={act}>
              {change.error === null ? children : 'Try again'}
            </Button>
          }
        >
          {question !== undefined && <p>{question}</p>}
          {change.error && <Failure error={change.error} />}
        </Dialog>
      )}
    </>
  );
}
