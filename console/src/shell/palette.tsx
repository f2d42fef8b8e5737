/** The command palette: jumps to screens, ids and names. It opens with Ctrl+K, Cmd+K or its button. */
import { useRouter } from '@tanstack/react-router';
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { useCall } from '../api/client.ts';
import { type PaletteTarget, paletteTargetsFor } from './palette-targets.ts';

const ONCE = { refreshMs: 0 };

interface Props {
  screens: readonly (readonly [to: string, name: string])[];
}

export function Palette({ screens }: Props) {
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setIsOpen(true);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button
        type="button"
        onClick={() => setIsOpen(true)}
        className="flex h-8 items-center justify-between rounded-md border border-line bg-page px-2.5 text-quiet hover:text-text"
      >
        Go to… <kbd className="font-sans text-xs">Ctrl K</kbd>
      </button>
      {isOpen && <Search screens={screens} onClose={() => setIsOpen(false)} />}
    </>
  );
}

function Search({ screens, onClose }: Props & { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const router = useRouter();
  const listId = useId();
  const [typed, setTyped] = useState('');
  const [chosen, setChosen] = useState(0);
  useEffect(() => dialog.current?.showModal(), []);
  const queues = useCall('listQueues', {}, ONCE).data?.map(({ name }) => name);
  const schedules = useCall('listSchedules', {}, ONCE).data?.map(({ scheduleId }) => scheduleId);
  const groups = useCall('listUrlGroups', {}, ONCE).data?.map(({ name }) => name);
  const keys = useCall('listFlowControlKeys', {}, ONCE).data?.flowControls.map(({ flowControlKey }) => flowControlKey);
  const targets = paletteTargetsFor(typed, screens, { queues, schedules, urlGroups: groups, flowControlKeys: keys });
  const go = (target: PaletteTarget | undefined): void => {
    if (target === undefined) return;
    dialog.current?.close();
    router.history.push(`/console${target.to}`);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setChosen((chosen + step + targets.length) % Math.max(1, targets.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      go(targets[chosen]);
    }
  };
  return (
    <dialog
      ref={dialog}
      aria-label="Go to"
      onClose={onClose}
      className="mx-auto mt-[12dvh] w-[min(36rem,calc(100vw-2rem))] overflow-hidden rounded-lg border border-line bg-panel text-text"
    >
      <input
        role="combobox"
        aria-label="Screen, id or name"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={targets.length > 0 ? `${listId}-${chosen}` : undefined}
        placeholder="Screen, id or name"
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
        className="h-11 w-full border-b border-line bg-panel px-4 outline-none"
      />
      <div id={listId} role="listbox" aria-label="Results" className="max-h-80 overflow-y-auto p-1">
        {targets.map((target, index) => (
          <button
            key={`${target.kind} ${target.name}`}
            id={`${listId}-${index}`}
            type="button"
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onClick={() => go(target)}
            onMouseMove={() => setChosen(index)}
            className="flex w-full items-baseline justify-between gap-4 rounded-md px-3 py-1.5 text-left aria-selected:bg-raised"
          >
            <span className="break-all">{target.name}</span>
            <span className="text-xs whitespace-nowrap text-quiet">{target.kind}</span>
          </button>
        ))}
        {targets.length === 0 && <p className="px-3 py-2 text-quiet">No matches.</p>}
      </div>
    </dialog>
  );
}
