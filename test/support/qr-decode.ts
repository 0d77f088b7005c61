// Reads a QR code as an independent decoder does.
import jsqrModule from 'jsqr';
import { PNG } from 'pngjs';

// the package is CommonJS with a default export inside
const jsqr = ((jsqrModule as unknown as { default?: typeof jsqrModule }).default ?? jsqrModule) as unknown as (
  data: Uint8ClampedArray,
  width: number,
  height: number,
) => { data: string } | null;

const HEAD = 'data:image/png;base64,';

/** What a code says that is a PNG as a data URI; undefined where no code is found. */
export function decodeQr(uri: string): string | undefined {
  if (!uri.startsWith(HEAD)) throw new Error(`no PNG: ${uri.slice(0, 40)}`);
  const png = PNG.sync.read(Buffer.from(uri.slice(HEAD.length), 'base64'));
  return jsqr(new Uint8ClampedArray(png.data), png.width, png.height)?.data;
}
