// One GET over one connection, for callers that would otherwise load an HTTP client for nothing else (a supervisor, a process that waits
// for another): that would cost a tenth of a second at every start, and memory for good.
import { connect } from 'node:net';

const LARGEST_ANSWER_BYTES = 64 * 1024;

/**
 * Sends a GET; resolves with the status and the body as text. It requests `Connection: close` and reads until the end; chunked bodies are
 * not decoded. Rejects when nobody listens, when the answer is not HTTP, or not complete in time.
 * @param url http only
 */
export function httpGet(
  url: URL,
  options: { readonly authorization?: string; readonly withinMs: number },
): Promise<{ readonly status: number; readonly body: string }> {
  const lines = [`GET ${url.pathname}${url.search} HTTP/1.1`, `Host: ${url.host}`, 'Connection: close'];
  if (options.authorization !== undefined) lines.push(`Authorization: ${options.authorization}`);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 80) });
    const timer = setTimeout(() => socket.destroy(new Error(`no answer in ${options.withinMs} ms`)), options.withinMs);
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
      if (answer.length > LARGEST_ANSWER_BYTES) socket.destroy(new Error('the answer is too long'));
    });
    socket.once('error', reject);
    socket.once('close', () => {
      clearTimeout(timer);
      const [, status, body] = /^HTTP\/1\.1 (\d{3})[\s\S]*?\r\n\r\n([\s\S]*)$/.exec(answer) ?? [];
      if (status === undefined) reject(new Error('what answers is not HTTP'));
      else resolve({ status: Number(status), body: body ?? '' });
    });
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  });
}
