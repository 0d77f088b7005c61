// Styles and scripts of pages, read once. Their names change with their content, so that browsers may keep them for ever.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import type { ServerContext } from '../server-context.ts';

export type PageFile = { readonly name: string; readonly type: string; readonly bytes: Buffer };

const TYPES = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' } as const;

const read = (file: `${string}/${string}`): Buffer => readFileSync(new URL(`../${file}`, import.meta.url));

/** What every page's style begins with: colours, type, the mark of what has the focus. */
const BASE = read('pages/browser/base.css');

/** A style or a script. @param folder of the pages it belongs to, whose `browser` has it */
export function pageFile(folder: 'checkout' | 'docs' | 'pages', name: string, extension: keyof typeof TYPES): PageFile {
  const own = read(`${folder}/browser/${name}.${extension}`);
  const bytes = extension === 'css' ? Buffer.concat([BASE, own]) : own;
  const version = createHash('sha256').update(bytes).digest('hex').slice(0, 12);
  return { name: `${name}-${version}.${extension}`, type: TYPES[extension], bytes };
}

/** Of every answer that is a page or belongs to one. */
export const PAGE_HEADERS = { 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' };

/** What a page may do: load these from here, and nothing from elsewhere; it stands in no frame. @param more further sources, as CSP Level 3 writes them @param forms where its forms may be sent */
export function pageHeaders(more: string, forms = "'none'"): Readonly<Record<string, string>> {
  const policy = `default-src 'none'; style-src 'self'; ${more}base-uri 'none'; form-action ${forms}; frame-ancestors 'none'`;
  return { ...PAGE_HEADERS, 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy };
}

/** Static files are exempt from limits. @param at the folder of their address, without a slash at the end */
export function mountFiles(app: FastifyInstance, context: ServerContext, at: string, files: readonly PageFile[]): void {
  const kept = { ...PAGE_HEADERS, 'cache-control': 'public, max-age=31536000, immutable' };
  for (const { name, type, bytes } of files)
    app.get(`${at}/${name}`, (request, reply) => {
      context.sign(request, reply);
      reply.headers({ ...kept, 'content-type': type }).send(bytes);
    });
}
