/**
 * Handles and counts the jobs of a library: `node handler.ts <library> <folder of its packages> <URL of its
 * database>`. The program runs as a separate process with an IPC channel; see `receiver-process.ts`.
 */
import { arrived, serveLedger } from '../../arrival-ledger.ts';
import { isLibraryName, loadLibrary } from './load.ts';

const [name, folder = '', url = ''] = process.argv.slice(2);
if (!isLibraryName(name)) throw new Error(`there is no library "${name}"`);
const library = await loadLibrary(name, folder);
await library.handleJobs(url, ({ body }) => arrived(Number(body.slice(0, 10))));
serveLedger({ kind: 'receiving' });
