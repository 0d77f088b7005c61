// The start's way to say no: one clear line for the operator, exit code 1, no stack. Thrown by everything in src/main that finds
// something a person has to change.
export class StartRefused extends Error {
  override readonly name = 'StartRefused';
}
