// JSON-RPC of a real node.
import { post } from './post.ts';

export type Call = ReturnType<typeof caller>;

/** Calls of a node; they throw with its text and code. @param of.authorization of each call, where it asks for one */
export function caller(
  url: string,
  { authorization = null, version = '2.0' }: { readonly authorization?: (() => string) | null; readonly version?: string } = {},
) {
  return async function call<T>(method: string, ...params: readonly unknown[]): Promise<T> {
    const headers = authorization === null ? {} : { authorization: authorization() };
    const { text } = await post(url, JSON.stringify({ jsonrpc: version, id: 1, method, params }), headers);
    const answer = JSON.parse(text) as { result: T; error?: { code: number; message: string } | null };
    if (answer.error) throw new Error(`${method}: ${answer.error.message} (${answer.error.code})`);
    return answer.result;
  };
}
