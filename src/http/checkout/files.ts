// The page's style and script, read once. Their names change with their content, so that browsers may keep them for ever.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export type PageFile = { readonly name: string; readonly type: string; readonly bytes: Buffer };

function pageFile(name: string, extension: 'css' | 'js', type: string): PageFile {
  const bytes = readFileSync(new URL(`./browser/${name}.${extension}`, import.meta.url));
  const version = createHash('sha256').update(bytes).digest('hex').slice(0, 12);
  return { name: `${name}-${version}.${extension}`, type, bytes };
}

export const FILES = {
  style: pageFile('checkout', 'css', 'text/css; charset=utf-8'),
  script: pageFile('checkout', 'js', 'text/javascript; charset=utf-8'),
} as const;
