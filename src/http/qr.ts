// The QR code of a payment URI as a PNG data URI: qr-modules.ts makes the modules, qr-png.ts the picture, one bit a pixel, because that is a
// third of the bytes and a fiftieth of the time of what encoders write by default. Called by the handlers of create and list.
import { qrModules } from './qr-modules.ts';
import { qrPng } from './qr-png.ts';

/** The quiet zone that ISO/IEC 18004 asks for, in modules. */
const QUIET_MODULES = 4;

/** @param text what the code says; letters of an address keep their case */
export function qrDataUri(text: string): string {
  return `data:image/png;base64,${qrPng(qrModules(text, QUIET_MODULES)).toString('base64')}`;
}
