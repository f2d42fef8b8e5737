/** A plain table for up to some hundred rows; `long-list.tsx` is for longer lists. */

/** Columns without a name hold buttons, which stay visible in a narrow window. */
const ACTIONS = 'max-md:sticky max-md:right-0 max-md:bg-panel max-md:*:flex-col';

export interface Column<Row> {
  /** Empty for a column of buttons. */
  name: string;
  cell: (row: Row) => React.ReactNode;
  /** CSS classes of the cells; `text-right` for numbers. */
  className?: string;
}

interface Props<Row> {
  /** For screen readers. */
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
}

export function Table<Row>({ label, columns, rows, keyOf }: Props<Row>) {
  return (
    <div className="-m-4 overflow-x-auto">
      <table className="w-full border-collapse text-left" aria-label={label}>
        <thead>
          <tr className="border-b border-line text-xs text-quiet">
            {columns.map(({ name, className = '' }) => (
              <th key={name} scope="col" className={`px-4 py-2 font-medium whitespace-nowrap ${className}`}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} className="border-b border-line align-baseline last:border-0 hover:bg-raised">
              {columns.map(({ name, cell, className = '' }) => (
                <td key={name} className={`px-4 py-2 ${className} ${name === '' ? ACTIONS : ''}`}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
