/** `waypost login`, `profiles` and `logout`: stores, lists and deletes the servers of this user. */
import { type Command, CommandFailed, EXIT, type Terminal } from '../command.ts';
import { DEFAULT_PROFILE, profilesFileOf, readProfiles, saveProfiles } from '../http/profiles.ts';
import { DEFAULT_URL, serverOf } from '../http/server.ts';
import { type Call, commandOf, show, showTable } from '../http/verb.ts';
import { plain } from '../plain.ts';

export const login: Command = commandOf('login', {
  '': {
    isLocal: true,
    meaning:
      'Checks an address and a token against the server, and stores them as a profile, so that commands need no environment variables. Prompts for missing options. Only the owner can read the file.',
    options: {
      '--profile <name>': `Name of the profile. [${DEFAULT_PROFILE}]`,
      '--server <address>': 'Address of the server.',
      '--token <token>': 'Token of the project; - reads it from standard input. A prompt does not echo it.',
      '--json': 'Print JSON.',
    },
    example: 'login --profile shop --server https://waypost.example.com --token - < token.txt',
    async run(call) {
      const { terminal } = call;
      const profile = nameOf(call);
      const server =
        call.values('server').at(-1) ?? (await promptFor(terminal, `Address [${DEFAULT_URL}]: `, 'server'));
      const typed = call.values('token').at(-1) ?? (await promptFor(terminal, 'Token: ', 'token'));
      const token = (typed === '-' ? new TextDecoder().decode(await terminal.readInput()) : typed).trim();
      if (!/^[!-~]+$/.test(token)) throw new CommandFailed('--token: must be one line without spaces', EXIT.usage);
      const target = serverOf({ server: server || DEFAULT_URL, token }, {});
      const session = await target.ask<{ project: string; scope: string }>('getSession');
      const saved = readProfiles(terminal.env).set(profile, { url: target.url, token });
      const file = saveProfiles(terminal.env, saved);
      const owner = `the project "${plain(session.project)}", with a ${plain(session.scope)} token`;
      const text = `Logged in to ${target.url}: ${owner}. Saved as the profile ${profile} in ${file}`;
      return show(call, { profile, server: target.url, ...session }, text);
    },
  },
});

export const profiles: Command = commandOf('profiles', {
  '': {
    isLocal: true,
    options: { '--json': 'Print JSON.' },
    meaning: `Lists the servers that "waypost login" has saved. Without --profile and QSTASH_URL, commands use the profile ${DEFAULT_PROFILE}.`,
    example: 'profiles',
    async run(call) {
      const saved = [...readProfiles(call.terminal.env)].map(([profile, { url }]) => ({ profile, server: url }));
      return showTable(call, saved, [
        ['PROFILE', ({ profile }) => profile],
        ['SERVER', ({ server }) => server],
      ]);
    },
  },
});

export const logout: Command = commandOf('logout', {
  '': {
    meaning: 'Deletes a profile and its token. The token stays valid: "waypost tokens revoke" revokes it.',
    isLocal: true,
    options: { '--profile <name>': `Name of the profile. [${DEFAULT_PROFILE}]`, '--json': 'Print JSON.' },
    example: 'logout --profile shop',
    async run(call) {
      const profile = nameOf(call);
      const { env } = call.terminal;
      const saved = readProfiles(env);
      if (!saved.delete(profile))
        throw new CommandFailed(`there is no profile ${JSON.stringify(profile)}; see waypost profiles`, EXIT.notFound);
      saveProfiles(env, saved);
      return show(call, { profile }, `Deleted the profile ${profile} in ${profilesFileOf(env)}`);
    },
  },
});

function nameOf({ values }: Call): string {
  const name = values('profile').at(-1) ?? DEFAULT_PROFILE;
  if (/^\w[\w.-]{0,63}$/.test(name)) return name;
  throw new CommandFailed(
    `--profile: must consist of letters, digits and ._-, not ${JSON.stringify(name)}`,
    EXIT.usage,
  );
}

async function promptFor({ ask }: Terminal, question: string, option: 'server' | 'token'): Promise<string> {
  if (ask === undefined)
    throw new CommandFailed(`login: --${option} <${option === 'server' ? 'address' : option}> is missing`, EXIT.usage);
  return (await ask(question, option === 'token' ? 'secret' : undefined)).trim();
}
