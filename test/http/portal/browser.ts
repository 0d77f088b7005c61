// What a browser does with the portal: it keeps the cookie, follows where a form leads, and sends the fields of the form that it was shown.
import type { ApiServer } from '../api-server.ts';
import { PASSWORD } from '../api-server.ts';

export type Seen = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The path that the page was found at in the end. */
  readonly path: string;
};
type Fields = Readonly<Record<string, string>>;

/** The words of a page as somebody reads them. */
export const words = (text: string): string =>
  text
    .replace(/<[^>]*>/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
    .replace(/\s+/g, ' ');

/** The hidden fields of the form that does `act`; of several the first that has `holding` in it. */
export function hiddenFields(text: string, act: string, holding = ''): Record<string, string> {
  const forms = text.match(/<form method="post">[\s\S]*?<\/form>/g) ?? [];
  const form = forms.find((one) => one.includes(`name="do" value="${act}"`) && one.includes(holding));
  if (form === undefined) throw new Error(`the page has no form that does ${act}`);
  return Object.fromEntries(
    [...form.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)].map(([, name, value]) => [name, value]),
  );
}

export function openBrowser(base: string, headers: Readonly<Record<string, string>> = {}) {
  let cookie: string | null = null;

  async function once(path: string, fields: Fields | null, more: Fields): Promise<Seen> {
    const response = await fetch(base + path, {
      method: fields === null ? 'GET' : 'POST',
      redirect: 'manual',
      headers: { ...headers, ...(cookie === null ? {} : { cookie }), ...more },
      ...(fields === null ? {} : { body: new URLSearchParams(fields) }),
    });
    const set = response.headers.get('set-cookie');
    if (set !== null) cookie = set.includes('Max-Age=0') ? null : (set.split(';')[0] as string);
    return { status: response.status, headers: response.headers, text: await response.text(), path };
  }
  async function followed(first: Seen): Promise<Seen> {
    const to = first.headers.get('location');
    return first.status === 303 && to !== null ? followed(await once(to, null, {})) : first;
  }
  const browser = {
    /** The page, as it is or as what it leads to. */
    get: async (path: string, more: Fields = {}): Promise<Seen> => followed(await once(path, null, more)),
    /** What a form of these fields leads to. */
    post: async (path: string, fields: Fields, more: Fields = {}): Promise<Seen> => followed(await once(path, fields, more)),
    /** The same without following. */
    postOnce: (path: string, fields: Fields, more: Fields = {}): Promise<Seen> => once(path, fields, more),
    getOnce: (path: string, more: Fields = {}): Promise<Seen> => once(path, null, more),
    /** Opens the page and sends its form that does `act`. */
    async submit(path: string, act: string, fields: Fields = {}): Promise<Seen> {
      const shown = await browser.get(path);
      return browser.post(path, { ...hiddenFields(shown.text, act), ...fields });
    },
    cookie: () => cookie,
    setCookie: (value: string | null) => {
      cookie = value;
    },
  };
  return browser;
}

/** A browser where this user has signed in. */
export async function signedInBrowser(api: Pick<ApiServer, 'base'>, username = 'shop', headers: Fields = {}) {
  const browser = openBrowser(api.base, headers);
  const shown = await browser.post('/sign-in', { username, password: PASSWORD });
  if (browser.cookie() === null) throw new Error(`signing in answered ${shown.status} ${words(shown.text)}`);
  return browser;
}
