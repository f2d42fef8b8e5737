/** Arguments of tsc that declare what `waypost/testing` gives: all that is published with types, in one file that stands alone. */
export function declareTesting(folder: string): string[] {
  return [
    ...['src/testing/types.ts', '--ignoreConfig', '--declaration', '--emitDeclarationOnly'],
    ...['--module', 'nodenext', '--target', 'es2024', '--outDir', folder],
  ];
}
