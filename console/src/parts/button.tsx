import type { ButtonHTMLAttributes } from 'react';

const KINDS = {
  plain: 'border border-line bg-panel hover:bg-raised',
  main: 'border border-transparent bg-accent text-on-accent hover:opacity-90',
  danger: 'border border-line bg-panel text-bad hover:bg-raised',
  quiet: 'border border-transparent text-quiet hover:bg-raised hover:text-text',
};

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: keyof typeof KINDS;
}

export function Button({ kind = 'plain', className = '', type = 'button', ...rest }: Props) {
  return (
    <button
      type={type}
      className={`inline-flex h-8 items-center justify-center gap-1.5 rounded-md px-3 font-medium whitespace-nowrap disabled:opacity-50 ${KINDS[kind]} ${className}`}
      {...rest}
    />
  );
}
