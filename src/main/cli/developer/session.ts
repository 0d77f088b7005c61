// A signed-in user of the API: calls operations with the tokens of a profile, and exchanges them when they have expired.
import { CommandFailed } from '../output.ts';
import { type Body, CallRefused, post } from './api-client.ts';
import { type Profile, readProfile, saveProfile } from './profile.ts';

export type TokenPair = { readonly access_token: string; readonly refresh_token: string };

export type Session = {
  readonly url: string;
  readonly username: string;
  /** The access token now. */
  token(): string;
  /** Exchanges the tokens; another command of the same profile may have done so already. */
  renew(): Promise<void>;
  /** Calls an operation with its token. @throws CommandFailed */
  call<T>(path: string, body?: Body, headers?: Record<string, string>): Promise<T>;
};

/** @throws CommandFailed where nobody has signed in under this name */
export function openSession(name: string): Session {
  let profile: Profile = readProfile(name);

  async function renew(): Promise<void> {
    const now = readProfile(name);
    if (now.url !== profile.url || now.username !== profile.username) throw signedInAnew(name, now);
    if (now.access_token !== profile.access_token) {
      profile = now;
      return;
    }
    const { access_token, refresh_token } = profile;
    try {
      const pair = await post<TokenPair>(profile.url, '/auth_refresh', { access_token, refresh_token });
      profile = { ...profile, access_token: pair.access_token, refresh_token: pair.refresh_token };
    } catch (error) {
      throw error instanceof CallRefused && error.status === 401 ? signedOut(error) : error;
    }
    saveProfile(name, profile);
  }

  return {
    url: profile.url,
    username: profile.username,
    token: () => profile.access_token,
    renew,
    async call<T>(path: string, body: Body = {}, headers: Record<string, string> = {}): Promise<T> {
      const send = () => post<T>(profile.url, path, { access_token: profile.access_token, ...body }, headers);
      try {
        return await send();
      } catch (error) {
        if (!(error instanceof CallRefused) || error.status !== 401) throw error;
        if (error.code !== 'token_expired') throw signedOut(error);
        await renew();
        return await send();
      }
    },
  };
}

/** A command that goes on for long would tell its program what happens to somebody else. */
function signedInAnew(name: string, { url, username }: Profile): CommandFailed {
  const who = `${username} at ${url}`;
  return new CommandFailed(`the profile ${name} is another user's now (${who}): begin again, or name --profile`, 'not_signed_in');
}

/** The sign-in has ended. */
export function signedOut(error: CallRefused): CommandFailed {
  return new CommandFailed(`the sign-in has ended (${error.code}): run "bursar login" again`, error.code);
}
