/** A filter whose values are kept in the URL, so that a link shows the same list. */
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import type { Search } from '../search.ts';
import { Button } from './button.tsx';
import { Choice, TextField } from './field.tsx';

export interface FilterField {
  /** The parameter of the API. */
  name: string;
  label: string;
  placeholder?: string;
  /** A time is stored in milliseconds. */
  kind?: 'text' | 'number' | 'time';
  choices?: readonly (readonly [value: string, text: string])[];
  /** The field is hidden until it has a value or the user asks for more filters. */
  isRare?: boolean;
}

export function useFilter(): [values: Search, change: (values: Search) => void] {
  const values = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  return [values, (changed) => void navigate({ to: '.', search: { ...values, ...changed } as never })];
}

/** Returns the values of `fields` only. */
export function filterOf(fields: readonly FilterField[], values: Search): Record<string, string> {
  return Object.fromEntries(
    fields.flatMap(({ name }) => {
      const value = values[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

export function Filters({ fields }: { fields: readonly FilterField[] }) {
  const [values, change] = useFilter();
  const [isWide, setIsWide] = useState(false);
  const given = filterOf(fields, values);
  const shown = fields.filter(({ name, isRare }) => !isRare || isWide || given[name] !== undefined);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    change(Object.fromEntries(shown.map((field) => [field.name, valueIn(field, String(form.get(field.name) ?? ''))])));
  };
  return (
    <search aria-label="Filter">
      {/* A new key resets the form to the values of the URL. */}
      <form
        key={JSON.stringify(given)}
        onSubmit={submit}
        className="grid grid-cols-2 items-end gap-2 sm:grid-cols-[repeat(auto-fill,minmax(11rem,1fr))]"
      >
        {shown.map((field) => (
          <Field key={field.name} field={field} value={given[field.name] ?? ''} />
        ))}
        <div className="col-span-full flex flex-wrap gap-2 sm:col-span-2">
          <Button type="submit">Filter</Button>
          {Object.keys(given).length > 0 && (
            <Button
              kind="quiet"
              onClick={() => change(Object.fromEntries(fields.map(({ name }) => [name, undefined])))}
            >
              Clear
            </Button>
          )}
          {shown.length < fields.length && (
            <Button kind="quiet" aria-expanded={false} onClick={() => setIsWide(true)}>
              More filters
            </Button>
          )}
        </div>
      </form>
    </search>
  );
}

function Field({ field, value }: { field: FilterField; value: string }) {
  const { name, label, placeholder, kind = 'text', choices } = field;
  if (choices) {
    return (
      <Choice
        name={name}
        label={label}
        choices={choices}
        defaultValue={value}
        onChange={(event) => event.currentTarget.form?.requestSubmit()}
      />
    );
  }
  return (
    <TextField
      name={name}
      label={label}
      placeholder={placeholder}
      type={kind === 'time' ? 'datetime-local' : kind}
      step={kind === 'time' ? 1 : undefined}
      defaultValue={kind === 'time' ? localTime(value) : value}
    />
  );
}

function valueIn({ kind }: FilterField, text: string): string | undefined {
  const trimmed = text.trim();
  if (trimmed === '') return undefined;
  return kind === 'time' ? String(new Date(trimmed).getTime()) : trimmed;
}

/** The value of a `datetime-local` field: in the browser's time zone, without the zone. */
function localTime(ms: string): string {
  const at = new Date(Number(ms));
  if (ms === '' || Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
