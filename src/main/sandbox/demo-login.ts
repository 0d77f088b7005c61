// What a start of the sandbox prints about its demo merchant.

/** `password` null: it was changed since, and only the operator knows it. */
export type DemoLogin = { readonly username: string; readonly password: string | null };

/** Its credentials and one command to paste. */
export function printDemo(url: string, { username, password }: DemoLogin): void {
  const body = JSON.stringify({ username, password: password ?? 'YOUR PASSWORD' }).replaceAll("'", "'\\''");
  const shown = password ?? 'changed since by the operator, and kept; BURSAR_DEMO_PASSWORD sets another';
  console.log(`demo merchant: username ${username}, password ${shown}`);
  console.log(`try: curl -s ${new URL('/auth', url).href} -H 'content-type: application/json' -d '${body}'`);
}
