// What the life of a process reads of its environment, and puts there.

/** Whether npm runs us: then it is our parent, and its end is ours. */
export const isStartedByNpm = (): boolean => process.env.npm_lifecycle_event !== undefined;

/** Variables that a supervisor tells when a process begins; its configuration is read after that. */
export function addVariables(variables: Readonly<Record<string, string>>): void {
  Object.assign(process.env, variables);
}
