/** Form fields with labels. */
import { type InputHTMLAttributes, type SelectHTMLAttributes, type TextareaHTMLAttributes, useId } from 'react';

const BOX = 'w-full rounded-md border border-line bg-page px-2.5 text-text placeholder:text-quiet';

interface Labelled {
  label: string;
  /** A line below the field. */
  hint?: React.ReactNode;
}

function Frame({ id, label, hint, children }: Labelled & { id: string; children: React.ReactNode }) {
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className="text-xs font-medium text-quiet">
        {label}
      </label>
      {children}
      {hint !== undefined && <p className="text-xs text-quiet">{hint}</p>}
    </div>
  );
}

export function TextField({ label, hint, className = '', ...rest }: Labelled & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId();
  return (
    <Frame id={id} label={label} hint={hint}>
      <input id={id} className={`h-8 ${BOX} ${className}`} {...rest} />
    </Frame>
  );
}

export function TextArea({
  label,
  hint,
  className = '',
  ...rest
}: Labelled & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  const id = useId();
  return (
    <Frame id={id} label={label} hint={hint}>
      <textarea id={id} className={`min-h-24 py-1.5 font-mono ${BOX} ${className}`} {...rest} />
    </Frame>
  );
}

/** The choices for the method of a delivery. */
export const METHODS = ['POST', 'GET', 'PUT', 'PATCH', 'DELETE'].map((method) => [method, method] as const);

interface ChoiceProps extends Labelled, SelectHTMLAttributes<HTMLSelectElement> {
  choices: readonly (readonly [value: string, text: string])[];
}

export function Choice({ label, hint, choices, className = '', ...rest }: ChoiceProps) {
  const id = useId();
  return (
    <Frame id={id} label={label} hint={hint}>
      <select id={id} className={`h-8 ${BOX} ${className}`} {...rest}>
        {choices.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </Frame>
  );
}
