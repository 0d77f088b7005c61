// Arithmetic of QR's error correction (ISO/IEC 18004:2024 §7.5.2): Reed-Solomon codes over GF(2^8).

const products = new Map<number, Uint8Array>();
/** For each byte its products with the coefficients of the generator polynomial of this degree (§7.5.2, Annex A), without the leading 1. */
export function productsOf(degree: number): Uint8Array {
  const known = products.get(degree);
  if (known !== undefined) return known;
  const generator = new Uint8Array(degree);
  generator[degree - 1] = 1;
  for (let i = 0, root = 1; i < degree; i++, root = product(root, 2)) {
    for (let j = 0; j < degree; j++) generator[j] = product(generator[j] as number, root) ^ (generator[j + 1] ?? 0);
  }
  const table = Uint8Array.from({ length: 256 * degree }, (_, index) =>
    product(Math.floor(index / degree), generator[index % degree] as number),
  );
  products.set(degree, table);
  return table;
}

/** In GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1. */
function product(a: number, b: number): number {
  let sum = 0;
  for (let bit = 7; bit >= 0; bit--) {
    sum = (sum << 1) ^ ((sum >> 7) * 0x11d);
    if ((b >> bit) & 1) sum ^= a;
  }
  return sum;
}
