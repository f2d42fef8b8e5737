/** `waypost login`, `profiles` and `logout`: which servers this person's verbs ask. */
import { type Command, CommandFailed, EXIT, type Terminal } from '../command.ts';
import { DEFAULT_PROFILE, profilesFileOf, readProfiles, saveProfiles } from '../http/profiles.ts';
import { DEFAULT_URL, serverOf } from '../http/server.ts';
import { type Call, commandOf, show, showTable } from '../http/verb.ts';
import { plain } from '../plain.ts';

export const login: Command = commandOf('login', {
  '': {
    isLocal: true,
    meaning:
      'Checks an address and a token against the server, and keeps them as a profile: for whoever is logged in, verbs need no environment. Asks for what no option names. The file is for its owner alone.',
    options: {
      '--profile <name>': `What to call it. [${DEFAULT_PROFILE}]`,
      '--server <address>': 'Address of the server.',
      '--token <token>': 'Token of the project; - reads it from standard input. Asked for, it is not seen.',
      '--json': 'Print JSON.',
    },
    example: 'login --profile shop --server https://waypost.example.com --token - < token.txt',
    async run(call) {
      const { terminal } = call;
      const profile = nameOf(call);
      const server = call.values('server').at(-1) ?? (await answered(terminal, `Address [${DEFAULT_URL}]: `, 'server'));
      const given = call.values('token').at(-1) ?? (await answered(terminal, 'Token: ', 'token'));
      const token = (given === '-' ? new TextDecoder().decode(await terminal.readInput()) : given).trim();
      if (!/^[!-~]+$/.test(token)) throw new CommandFailed('--token: one line without spaces is needed', EXIT.usage);
      const asked = serverOf({ server: server || DEFAULT_URL, token }, {});
      const session = await asked.ask<{ project: string; scope: string }>('getSession');
      const kept = readProfiles(terminal.env).set(profile, { url: asked.url, token });
      const file = saveProfiles(terminal.env, kept);
      const whose = `the project "${plain(session.project)}", with a ${plain(session.scope)} token`;
      const text = `Logged in to ${asked.url}: ${whose}. Kept as the profile ${profile} in ${file}`;
      return show(call, { profile, server: asked.url, ...session }, text);
    },
  },
});

export const profiles: Command = commandOf('profiles', {
  '': {
    isLocal: true,
    options: { '--json': 'Print JSON.' },
    meaning: `The servers that "waypost login" has been told of. Without --profile, and where the environment names no server, verbs ask that of the profile ${DEFAULT_PROFILE}.`,
    example: 'profiles',
    async run(call) {
      const kept = [...readProfiles(call.terminal.env)].map(([profile, { url }]) => ({ profile, server: url }));
      return showTable(call, kept, [
        ['PROFILE', ({ profile }) => profile],
        ['SERVER', ({ server }) => server],
      ]);
    },
  },
});

export const logout: Command = commandOf('logout', {
  '': {
    meaning: 'Forgets a profile and its token. The token itself goes on to count: "waypost tokens revoke" ends it.',
    isLocal: true,
    options: { '--profile <name>': `Which one. [${DEFAULT_PROFILE}]`, '--json': 'Print JSON.' },
    example: 'logout --profile shop',
    async run(call) {
      const profile = nameOf(call);
      const { env } = call.terminal;
      const kept = readProfiles(env);
      if (!kept.delete(profile))
        throw new CommandFailed(`there is no profile ${JSON.stringify(profile)}; see waypost profiles`, EXIT.notFound);
      saveProfiles(env, kept);
      return show(call, { profile }, `Forgot the profile ${profile} in ${profilesFileOf(env)}`);
    },
  },
});

function nameOf({ values }: Call): string {
  const name = values('profile').at(-1) ?? DEFAULT_PROFILE;
  if (/^\w[\w.-]{0,63}$/.test(name)) return name;
  throw new CommandFailed(`--profile: letters, digits and ._- are a name, not ${JSON.stringify(name)}`, EXIT.usage);
}

async function answered({ ask }: Terminal, question: string, option: 'server' | 'token'): Promise<string> {
  if (ask === undefined)
    throw new CommandFailed(`login: --${option} <${option === 'server' ? 'address' : option}> is missing`, EXIT.usage);
  return (await ask(question, option === 'token' ? 'secret' : undefined)).trim();
}
