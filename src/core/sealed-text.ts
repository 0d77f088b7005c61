// Texts with account numbers as they are stored: sealed, where there is a key, and otherwise as they are.
import type { Sealing } from './ports.ts';

const MARK = 'sealed:';

/** @param about what the text belongs to: opened with another, it is refused */
export function sealText(sealing: Sealing, text: string, about: string): string {
  const plain = new TextEncoder().encode(text);
  const sealed = sealing.seal(plain, about);
  return sealed === plain ? text : MARK + btoa(String.fromCharCode(...sealed));
}

/** What {@link sealText} was given; a text that was stored as it is comes back so. Throws for another key or another `about`. */
export function openText(sealing: Sealing, stored: string, about: string): string {
  if (!stored.startsWith(MARK)) return stored;
  const bytes = Uint8Array.from(atob(stored.slice(MARK.length)), (char) => char.charCodeAt(0));
  return new TextDecoder().decode(sealing.open(bytes, about));
}

/** The same; null where {@link openText} throws. */
export function openedOrNull(sealing: Sealing, stored: string, about: string): string | null {
  try {
    return openText(sealing, stored, about);
  } catch {
    return null;
  }
}

/** Whether a text contains a bank account. */
export function hasAccount(text: string): boolean {
  return text.includes('ach:');
}

/** The same for a destination: only bank accounts are sealed. */
export function sealDestination(sealing: Sealing, destination: string, about: string): string {
  return hasAccount(destination) ? sealText(sealing, destination, about) : destination;
}
