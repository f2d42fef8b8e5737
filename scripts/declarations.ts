/** The tsc arguments that generate the published declarations of `waypost/testing`, as one self-contained file. */
export function declareTesting(folder: string): string[] {
  return [
    ...['src/testing/types.ts', '--ignoreConfig', '--declaration', '--emitDeclarationOnly'],
    ...['--module', 'nodenext', '--target', 'es2024', '--outDir', folder],
  ];
}
